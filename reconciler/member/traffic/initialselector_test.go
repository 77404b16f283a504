// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

func TestInitialSelectorOfAService(t *testing.T) {
	labels := func(release string) map[string]string {
		return map[string]string{shipper.AppLabel: "web", shipper.ReleaseLabel: release}
	}
	asks := func(release string, c shipper.ClusterTrafficTarget) client.Object {
		c.Name = "west"
		return &shipper.TrafficTarget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: release, Labels: labels(release)},
			Spec:       shipper.TrafficTargetSpec{Clusters: []shipper.ClusterTrafficTarget{c}},
		}
	}
	weight, found := shipper.ClusterTrafficTarget{Weight: 1}, shipper.ClusterTrafficTarget{AsFound: true}
	pod := func(release, traffic string) client.Object {
		out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: release + "-x", Labels: labels(release)}}
		out.Labels[shipper.TrafficStatusLabel] = traffic
		return out
	}
	for sentence, tc := range map[string]struct {
		targets, pods []client.Object
		want          string
	}{
		"one has all the traffic":          {[]client.Object{asks("old", weight), asks("new", shipper.ClusterTrafficTarget{})}, nil, "old"},
		"two share it":                     {[]client.Object{asks("old", weight), asks("new", weight)}, nil, ""},
		"no Release is there":              {nil, nil, ""},
		"the first is new, and has no Pod": {[]client.Object{asks("new", found)}, nil, ""},
		"the first has Pods, and its step gives it no traffic": {
			[]client.Object{asks("new", found)}, []client.Object{pod("new", "")}, "",
		},
		"one has all of it, and the step of the next gives that none": {
			[]client.Object{asks("old", weight), asks("new", found)}, []client.Object{pod("old", ""), pod("new", "disabled")}, "old",
		},
		"it is found to have all of it": {[]client.Object{asks("old", found)}, []client.Object{pod("old", "enabled")}, "old"},
		"one has some, and is found to have": {
			[]client.Object{asks("old", found), asks("new", weight)}, []client.Object{pod("old", "enabled")}, "",
		},
	} {
		scheme := runtime.NewScheme()
		if err := shipper.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		if err := corev1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		byApp := func(o client.Object) []string { return []string{o.GetLabels()[shipper.AppLabel]} }
		pods := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&corev1.Pod{}, fleet.ByApp, byApp).WithObjects(tc.pods...).Build()
		targets := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.targets...).Build()
		got, err := NewInitialSelector(targets)(t.Context(), pods, "default", Selectors{App: "web"}, "west")
		if err != nil || got != tc.want {
			t.Errorf("%s: got %q, want %q (%v)", sentence, got, tc.want, err)
		}
	}
}
