// SPDX-License-Identifier: Apache-2.0

package application

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/webhook/response"
)

// warnOfCopy warns, and reports it, if an Application that is created waits for Releases as one that is restored from a backup: a copy of
// one for another namespace has the same annotation. own are its Releases, oldest first.
func warnOfCopy(a *response.Response, app *shipper.Application, own []*shipper.Release) bool {
	created := &shipper.Application{ObjectMeta: app.ObjectMeta} // the API server drops the status
	var newest *shipper.Release
	if len(own) > 0 {
		newest = own[len(own)-1]
	}
	if !stamp.Restoring(created, newest) {
		return false
	}
	highest := shipper.AppHighestObservedGenerationAnnotation
	a.Warn("the annotation %s is %q: the Application waits until its Release of this generation is restored from a backup, and nothing is "+
		"rolled out before; if this is a copy of another Application, delete it, and create it without the annotation",
		highest, app.Annotations[highest])
	return true
}

// maxNulls bounds the fields that a warning names.
const maxNulls = 5

// warnOfNulls warns of fields of the values that a manifest sets to null: kubectl apply drops them, and the chart's defaults are back.
func warnOfNulls(a *response.Response, app, old *shipper.Application) {
	applied := app.Annotations[corev1.LastAppliedConfigAnnotation]
	if applied == "" || applied == metaOf(old).Annotations[corev1.LastAppliedConfigAnnotation] || !strings.Contains(applied, "null") {
		return
	}
	var manifest struct {
		Spec struct{ Template map[string]any }
	}
	is := map[string]any{}
	raw, err := json.Marshal(app.Spec.Template)
	if err != nil || json.Unmarshal(raw, &is) != nil || json.Unmarshal([]byte(applied), &manifest) != nil {
		return
	}
	var fields []string
	for _, name := range []string{"values", "valuesPerRegion", "valuesPerCluster"} {
		if of := manifest.Spec.Template[name]; of != nil {
			fields = append(fields, nulls(of, is[name], "spec.template."+name)...)
		}
	}
	if len(fields) == 0 {
		return
	}
	if more := len(fields) - maxNulls; more > 0 {
		fields = append(fields[:maxNulls], fmt.Sprintf("%d more", more))
	}
	a.Warn("%s: null in the manifest, and missing in the Application: `kubectl apply` drops it, so the chart's default counts; "+
		"use `kubectl apply --server-side`, or a value other than null", strings.Join(fields, ", "))
}

// nulls are the paths of fields that are null in a manifest and missing in what was made of it, sorted.
func nulls(manifest, is any, path string) (out []string) {
	switch manifest := manifest.(type) {
	case map[string]any:
		there, _ := is.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(manifest)) {
			at := path + "." + chart.Shorten(name)
			if _, has := there[name]; manifest[name] == nil && !has {
				out = append(out, at)
			}
			out = append(out, nulls(manifest[name], there[name], at)...)
		}
	case []any:
		there, _ := is.([]any)
		for i := range min(len(manifest), len(there)) {
			out = append(out, nulls(manifest[i], there[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
	}
	return out
}
