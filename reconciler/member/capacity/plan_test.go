// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestDesired(t *testing.T) {
	tests := map[string]struct{ total, percent, want int32 }{
		"nothing of something":         {10, 0, 0},
		"everything":                   {10, 100, 10},
		"a fraction is a whole pod":    {10, 1, 1},
		"half of an odd number":        {3, 50, 2},
		"something of nothing":         {0, 50, 0},
		"the most there can be":        {math.MaxInt32, 100, math.MaxInt32},
		"exact where a float may err":  {100, 55, 55},
		"a total that makes no sense":  {-1, 50, 0},
		"a third of the golden twelve": {12, 33, 4},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Desired(shipper.ClusterCapacityTarget{TotalReplicaCount: tc.total, Percent: tc.percent})
			if got != tc.want {
				t.Errorf("Desired(%d, %d %%) = %d, want %d", tc.total, tc.percent, got, tc.want)
			}
		})
	}
}

func TestAchieved(t *testing.T) {
	tests := map[string]struct{ available, total, want int32 }{
		"none":                        {0, 10, 0},
		"all":                         {10, 10, 100},
		"rounded up":                  {1, 3, 34},
		"of nothing, everything":      {0, 0, 100},
		"more than all while surging": {12, 10, 120},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Achieved(tc.available, tc.total); got != tc.want {
				t.Errorf("Achieved(%d, %d) = %d, want %d", tc.available, tc.total, got, tc.want)
			}
		})
	}
}

func TestAReleaseLacksPodsThatAreNotReady(t *testing.T) {
	ready, unready := aPod("a", isReady), aPod("b", notReady)
	for name, tc := range map[string]struct {
		want shipper.ClusterCapacityTarget
		pods []corev1.Pod
		is   bool
	}{
		"all are ready":     {shipper.ClusterCapacityTarget{Percent: 100, TotalReplicaCount: 1}, []corev1.Pod{ready}, false},
		"one is not ready":  {shipper.ClusterCapacityTarget{Percent: 100, TotalReplicaCount: 2}, []corev1.Pod{ready, unready}, true},
		"none is there":     {shipper.ClusterCapacityTarget{Percent: 1, TotalReplicaCount: 4}, nil, true},
		"more than asked":   {shipper.ClusterCapacityTarget{Percent: 50, TotalReplicaCount: 2}, []corev1.Pod{ready, unready}, false},
		"none is asked for": {shipper.ClusterCapacityTarget{TotalReplicaCount: 4}, nil, false},
		"left as found":     {shipper.ClusterCapacityTarget{Percent: 100, TotalReplicaCount: 4, AsFound: true}, nil, false},
	} {
		if is := (observation{want: tc.want, pods: tc.pods}).lacks(); is != tc.is {
			t.Errorf("%s: lacks: %t", name, is)
		}
	}
}
