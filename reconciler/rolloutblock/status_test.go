// SPDX-License-Identifier: Apache-2.0

package rolloutblock

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rules "shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

func TestStatus(t *testing.T) {
	const global = "everywhere"
	app := func(namespace, name string) shipper.Application {
		return shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	rel := func(namespace, name string) shipper.Release {
		return shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	by := namers{
		applications: []shipper.Application{app("b", "x"), app("a", "z"), app("a", "y")},
		releases:     []shipper.Release{rel("a", "y-1"), rel("b", "x-1")},
	}
	tests := map[string]struct {
		namespace string
		by        namers
		want      shipper.RolloutBlockOverrides
	}{
		"a global block counts all namespaces": {
			global, by, shipper.RolloutBlockOverrides{Application: "a/y,a/z,b/x", Release: "a/y-1,b/x-1"},
		},
		"a local block counts its own": {"a", by, shipper.RolloutBlockOverrides{Application: "a/y,a/z", Release: "a/y-1"}},
		"nobody overrides":             {"a", namers{}, shipper.RolloutBlockOverrides{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "stop", Generation: 3}}
			want := shipper.RolloutBlockStatus{ObservedGeneration: 3, Active: ptr.To(true), Overrides: tc.want}
			if diff := cmp.Diff(want, status(b, tc.by, global, rules.Timing{Active: true}, nil)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	block := func(applications, releases string) *shipper.RolloutBlock {
		return &shipper.RolloutBlock{Status: shipper.RolloutBlockStatus{
			Overrides: shipper.RolloutBlockOverrides{Application: applications, Release: releases},
		}}
	}
	event := func(note string) report.Event {
		return report.Event{Type: "Normal", Reason: "RolloutBlockOverridesChanged", Action: "UpdateStatus", Note: note}
	}
	got := changes(block("a/x", ""), block("a/x,a/y", "a/y-1"))
	want := []report.Event{
		event("Overriding Applications: [a/x] -> [a/x,a/y]"), event("Overriding Releases: [] -> [a/y-1]"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := changes(block("a/x", ""), block("a/x", "")); got != nil {
		t.Errorf("nothing changed, but: %v", got)
	}
}

func TestOverrideKeys(t *testing.T) {
	app := func(annotation string) *shipper.Application {
		return &shipper.Application{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{shipper.RolloutBlockOverrideAnnotation: annotation},
		}}
	}
	if diff := cmp.Diff([]string{"a/x", "b/y"}, overrideKeys(app("b/y, a/x"))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := overrideKeys(app("nonsense")); got != nil {
		t.Errorf("an annotation that cannot be read names %v", got)
	}
}
