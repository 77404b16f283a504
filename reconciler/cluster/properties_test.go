// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

func TestStatusHasThePropertiesThatAreKnown(t *testing.T) {
	then, now := metav1.Unix(1000, 0), metav1.Unix(2000, 0)
	cpu := func(n string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
	}
	conditions := func(ready corev1.ConditionStatus, known ...shipper.Condition) []shipper.Condition {
		out := []shipper.Condition{{Type: "Joined", Status: "True", LastTransitionTime: then}}
		return append(append(out, known...), shipper.Condition{Type: "Ready", Status: ready, LastTransitionTime: then})
	}
	known := func(is corev1.ConditionStatus, reason, message string, at metav1.Time) shipper.Condition {
		return shipper.Condition{Type: "PropertiesKnown", Status: is, Reason: reason, Message: message, LastTransitionTime: at}
	}
	with := func(conditions []shipper.Condition, nodes *int32, of corev1.ResourceList, properties map[string]string) shipper.ClusterStatus {
		return shipper.ClusterStatus{
			ObservedGeneration: 2, InService: shipper.ConditionTrue(conditions, "Ready"), KubernetesVersion: "v1.37.1", Conditions: conditions,
			Nodes: nodes, Capacity: of, Allocatable: of, Properties: properties,
		}
	}
	const missing = "Shipper's account in this cluster may not list and watch nodes: run `shipperctl clusters join` again, or grant it by a " +
		`ClusterRole with the label shipper.booking.com/aggregate-to-application: "true" in that cluster`
	tier := map[string]string{"tier": "1"}
	for name, tc := range map[string]struct {
		before shipper.ClusterStatus
		ready  bool
		known  *fleet.Properties
		want   shipper.ClusterStatus
	}{
		"nothing is known yet": {with(conditions("True"), nil, nil, nil), true, nil, with(conditions("True"), nil, nil, nil)},
		"all is known": {
			with(conditions("True"), nil, nil, nil), true,
			&fleet.Properties{
				Nodes: &fleet.NodeTotals{Count: 2, Capacity: cpu("8"), Allocatable: cpu("8")}, Declared: &fleet.Declared{Properties: tier},
			},
			with(conditions("True", known("True", "", "", now)), ptr.To[int32](2), cpu("8"), tier),
		},
		"a property is left out": {
			with(conditions("True"), nil, nil, nil), true,
			&fleet.Properties{Nodes: &fleet.NodeTotals{}, Declared: &fleet.Declared{LeftOut: "x is left out"}},
			with(conditions("True", known("True", "", "x is left out", now)), ptr.To[int32](0), nil, nil),
		},
		"a right is withdrawn: the last figures stay": {
			with(conditions("True", known("True", "", "", then)), ptr.To[int32](2), cpu("8"), nil), true,
			&fleet.Properties{Declared: &fleet.Declared{Properties: tier}, Missing: []string{"list and watch nodes"}},
			with(conditions("True", known("False", "PropertiesNotReadable", missing, now)), ptr.To[int32](2), cpu("8"), tier),
		},
		"a cluster without the right is lost: Ready alone is False": {
			with(conditions("False", known("False", "PropertiesNotReadable", missing, then)), nil, nil, nil), false, nil,
			with(conditions("False", known("Unknown", "PropertiesNotReadable", missing, now)), nil, nil, nil),
		},
		"a cluster is lost: its properties stay, and are not known any more": {
			with(conditions("False", known("True", "", "", then)), ptr.To[int32](2), cpu("8"), tier), false, nil,
			with(conditions("False", known("Unknown", "PropertiesNotReadable",
				"the cluster is not ready: nodes, capacity, allocatable and properties are as they were last read", now)),
				ptr.To[int32](2), cpu("8"), tier),
		},
	} {
		t.Run(name, func(t *testing.T) {
			was := &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: tc.before}
			got := status(was, fleet.State{Ready: tc.ready}, tc.known, nil, time.Unix(2000, 0))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
