// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/chartcheck"
	"shipper.dev/shipper/reconciler/member/rights"
)

// rightsNeeded warns of kinds that an Application selects and that Shipper's account in application clusters may not write by default.
// Whether an administrator has granted the right is known in each cluster alone.
func rightsNeeded(manifest *unstructured.Unstructured, kinds meta.RESTMapper) []string {
	app := &shipper.Application{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(manifest.Object, app)
	if err != nil || app.Spec.Template.Resources == nil { // the API server refuses what is no Application
		return nil
	}
	var selected []schema.GroupResource
	content := false
	for _, s := range app.Spec.Template.Resources.Select {
		mapping, err := kinds.RESTMapping(schema.GroupKind{Group: s.Group, Kind: s.Kind})
		if err != nil {
			continue
		}
		if of := mapping.Resource.GroupResource(); !rights.Grants(of) && !slices.Contains(selected, of) {
			selected = append(selected, of)
		}
		content = content || s.Group == "" && s.Kind == "Namespace" && s.Content != shipper.ContentNone
	}
	lacking, err := chartcheck.NotByDefault(selected)
	if err != nil || len(lacking) == 0 {
		return nil
	}
	names := make([]string, len(lacking))
	for i, of := range lacking {
		names[i] = of.String()
	}
	text := "by default Shipper's account in application clusters may not write " + strings.Join(names, ", ")
	if content {
		text += ", nor kinds in a namespace that charts do not need"
	}
	return []string{text + "; an administrator of each cluster grants it there, unless that was done: " + rights.Grant(lacking...)}
}
