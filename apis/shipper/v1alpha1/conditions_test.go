// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	earlier = metav1.NewTime(time.Unix(1_000_000, 0))
	now     = metav1.NewTime(time.Unix(2_000_000, 0))
)

func TestSetCondition(t *testing.T) {
	for name, tc := range map[string]struct {
		have []Condition
		set  Condition
		want []Condition
	}{
		"the first condition begins now": {
			set:  Condition{Type: "B", Status: corev1.ConditionTrue},
			want: []Condition{{Type: "B", Status: corev1.ConditionTrue, LastTransitionTime: now}},
		},
		"a new condition is put in the order of types": {
			have: []Condition{{Type: "A"}, {Type: "C"}},
			set:  Condition{Type: "B", Status: corev1.ConditionTrue},
			want: []Condition{{Type: "A"}, {Type: "B", Status: corev1.ConditionTrue, LastTransitionTime: now}, {Type: "C"}},
		},
		"a changed status moves the transition time": {
			have: []Condition{{Type: "A", Status: corev1.ConditionFalse, LastTransitionTime: earlier}},
			set:  Condition{Type: "A", Status: corev1.ConditionTrue},
			want: []Condition{{Type: "A", Status: corev1.ConditionTrue, LastTransitionTime: now}},
		},
		"a changed reason and message do not": {
			have: []Condition{{Type: "A", Status: corev1.ConditionFalse, LastTransitionTime: earlier, Reason: "Old"}},
			set:  Condition{Type: "A", Status: corev1.ConditionFalse, Reason: "New", Message: "m", LastTransitionTime: now},
			want: []Condition{
				{Type: "A", Status: corev1.ConditionFalse, LastTransitionTime: earlier, Reason: "New", Message: "m"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := append([]Condition(nil), tc.have...)
			got := SetCondition(tc.have, tc.set, now)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.have); diff != "" {
				t.Errorf("the argument was modified (-before +after):\n%s", diff)
			}
		})
	}
}

func TestSetStrategyCondition(t *testing.T) {
	have := []ReleaseStrategyCondition{
		{Condition: Condition{Type: "A", Status: corev1.ConditionTrue, LastTransitionTime: earlier}, Step: 0},
	}
	got := SetStrategyCondition(have,
		ReleaseStrategyCondition{Condition: Condition{Type: "A", Status: corev1.ConditionTrue}, Step: 1}, now)
	want := []ReleaseStrategyCondition{
		{Condition: Condition{Type: "A", Status: corev1.ConditionTrue, LastTransitionTime: earlier}, Step: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("another step with the same status (-want +got):\n%s", diff)
	}
}

func TestConditionTrue(t *testing.T) {
	conditions := []Condition{{Type: "A", Status: corev1.ConditionTrue}, {Type: "B", Status: corev1.ConditionUnknown}}
	for conditionType, want := range map[string]bool{"A": true, "B": false, "C": false} {
		if got := ConditionTrue(conditions, conditionType); got != want {
			t.Errorf("ConditionTrue(%s) = %v, want %v", conditionType, got, want)
		}
	}
}
