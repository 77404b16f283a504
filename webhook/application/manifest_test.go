// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
)

// TestAValueThatKubectlDroppedIsWarnedOf: the annotation is what kubectl apply writes of a manifest whose nulls it drops.
func TestAValueThatKubectlDroppedIsWarnedOf(t *testing.T) {
	applied := func(template string) func(*shipper.Application) {
		return ask.Annotated(corev1.LastAppliedConfigAnnotation, `{"spec":{"template":{"chart":{"version":null},`+template+`}}}`)
	}
	with := func(values shipper.ChartValues) func(*shipper.Application) {
		return func(app *shipper.Application) { app.Spec.Template.Values = &values }
	}
	kept := with(shipper.ChartValues{"a": nil, "b": map[string]any{"d": 1.0}, "l": []any{nil, map[string]any{}}})
	const manifest = `"values":{"a":null,"b":{"c":null,"d":1},"l":[null,{"e":null}],"gone":{"x":null}}`
	const why = ": null in the manifest, and missing in the object: `kubectl apply` drops it, so the chart's default counts; " +
		"use `kubectl apply --server-side`, or a value other than null"
	const missing = "spec.template.values."
	for sentence, tc := range map[string]struct {
		req  *admission.Request
		want []string
	}{
		"nulls in maps and lists": {
			ask.Create("dev", ask.Application(kept, applied(manifest))),
			[]string{missing + "b.c, " + missing + "gone.x, " + missing + "l[1].e" + why},
		},
		"more than a message names": {
			ask.Create("dev", ask.Application(kept, applied(`"values":{"1":null,"2":null,"3":null,"4":null,"5":null,"6":null,"7":null}`))),
			[]string{missing + strings.Join([]string{"1", "2", "3", "4", "5"}, ", "+missing) + ", 2 more" + why},
		},
		"all are there": {ask.Create("dev", ask.Application(kept, applied(`"values":{"a":null}`))), nil},
		"all values":    {ask.Create("dev", ask.Application(applied(`"values":null`))), nil},
		"no JSON":       {ask.Create("dev", ask.Application(ask.Annotated(corev1.LastAppliedConfigAnnotation, "null"))), nil},
		"a manifest that was applied before": {
			ask.Update("dev", ask.Application(kept, applied(manifest)), ask.Application(applied(manifest))), nil,
		},
		"an edit that changes nothing else": {
			ask.Update("dev", ask.Application(kept, applied(`"values":{"b":{"c":null}}`)), ask.Application(kept)),
			[]string{missing + "b.c" + why},
		},
		"an edit that applies another one": {
			ask.Update("dev", ask.Application(kept, applied(`"values":{"b":{"c":null}}`)), ask.Application(applied(manifest))),
			[]string{missing + "b.c" + why},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			a := &response.Response{}
			if err := webhookOf(t, ask.Grant(), exact()).Validate(t.Context(), tc.req, a); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, warning := range a.Warnings() {
				if strings.Contains(warning, "null in the manifest") {
					got = append(got, warning)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestACopyOfAnApplicationIsWarnedOf: a user who may stamp keeps the annotations of Shipper, as a restore from a backup needs it.
func TestACopyOfAnApplicationIsWarnedOf(t *testing.T) {
	const highest = shipper.AppHighestObservedGenerationAnnotation
	const warning = `the annotation ` + highest + ` is "3": the Application waits until its Release of this generation is restored from a ` +
		`backup, and nothing is rolled out before; if this is a copy of another Application, delete it, and create it without the annotation`
	copied := ask.Application(ask.Annotated(highest, "3"))
	copied.Status.Conditions = []shipper.Condition{{Type: shipper.ApplicationReleaseSynced}} // kubectl get -o yaml has it
	for sentence, tc := range map[string]struct {
		app  *shipper.Application
		want bool
	}{
		"with the annotation":  {copied, true},
		"a new Application":    {ask.Application(), false},
		"one without Releases": {ask.Application(ask.Annotated("team", "web")), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			a := &response.Response{}
			hook := webhookOf(t, ask.Grant("ann stamp applications default/super-server"), exact())
			if err := hook.Validate(t.Context(), ask.Create("ann", tc.app), a); err != nil {
				t.Fatal(err)
			}
			warned, announced := false, false
			for _, text := range a.Warnings() {
				warned = warned || text == warning
				announced = announced || strings.HasPrefix(text, shipper.MakesRelease)
			}
			if warned != tc.want || announced == tc.want {
				t.Errorf("warnings %q", a.Warnings())
			}
		})
	}
}
