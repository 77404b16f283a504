// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// one is what a target says of which one cluster's Ready is as given.
func one(generation int64, ready shipper.Condition) Said {
	sum := condition("Ready", ready.Status, "", "")
	if ready.Status != "True" {
		sum = condition("Ready", "False", "ClustersNotReady", "a: "+ready.Reason)
	}
	operational := condition("Operational", "True", "", "")
	return Said{
		Generation: generation, Conditions: []shipper.Condition{operational, sum},
		Clusters: []Cluster{{"a", []shipper.Condition{operational, ready}}},
	}
}

func TestTurns(t *testing.T) {
	ready := condition("Ready", "True", "", "")
	no := func(reason, message string) shipper.Condition { return condition("Ready", "False", reason, message) }
	found := one(1, no("InProgress", "1 of 2"))
	found.Found = true
	unreachable := one(1, condition("Ready", "Unknown", "ClusterUnreachable", ""))
	other := one(1, ready)
	other.Clusters = []Cluster{{"b", other.Clusters[0].Conditions}}
	for sentence, tc := range map[string]struct {
		before, after Said
		want          bool
	}{
		"nothing":                            {one(1, ready), one(1, ready), false},
		"one Pod more":                       {one(1, no("InProgress", "1 of 2")), one(1, no("InProgress", "2 of 3")), false},
		"a Pod that starts":                  {one(1, no("InProgress", "1 of 2")), one(1, no("PodsNotReady", "1/2")), false},
		"Pods that are not in endpoints yet": {one(1, no("InProgress", "moved")), one(1, no("PodsNotInEndpoints", "1/2")), false},
		"what was asked for last begins":     {one(1, ready), one(2, no("InProgress", "scaling")), false},
		"asked for more while it begins":     {one(1, no("InProgress", "1 of 2")), one(2, no("InProgress", "1 of 3")), false},
		"what was asked for last is there":   {one(1, ready), one(2, ready), true},
		"it is ready":                        {one(1, no("InProgress", "1 of 2")), one(1, ready), true},
		"a Pod is lost":                      {one(1, ready), one(1, no("InProgress", "1 of 2")), true},
		"it is stuck":                        {one(1, no("InProgress", "1 of 2")), one(1, no("DeploymentStuck", "quota")), true},
		"it is stuck with what is new":       {one(1, ready), one(2, no("DeploymentStuck", "quota")), true},
		"it is not stuck any more":           {one(1, no("DeploymentStuck", "quota")), one(1, no("InProgress", "1 of 2")), true},
		"a cluster does not answer":          {one(1, no("InProgress", "1 of 2")), unreachable, true},
		"a cluster answers again":            {unreachable, one(1, no("InProgress", "1 of 2")), true},
		"first of all":                       {Said{}, one(1, no("InProgress", "1 of 2")), true},
		"another cluster":                    {one(1, ready), other, true},
		"what is found":                      {one(1, no("InProgress", "0 of 2")), found, true},
	} {
		if got := turns(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: turns is %t", sentence, got)
		}
	}
}

func TestHoldsBackForASecondAtMost(t *testing.T) {
	target := func(available int32) *shipper.CapacityTarget {
		ct := &shipper.CapacityTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0"}}
		ct.Status.Clusters = []shipper.ClusterCapacityStatus{{Name: "a", AvailableReplicas: available}}
		return ct
	}
	under, ready := one(1, condition("Ready", "False", "InProgress", "")), one(1, condition("Ready", "True", "", ""))
	pace := NewPace()
	for _, tc := range []struct {
		sentence      string
		at            time.Duration
		before, after int32
		says          Said
		want          time.Duration
	}{
		{"nothing to write", 0, 1, 1, under, 0},
		{"one more", 100 * time.Millisecond, 1, 2, under, time.Second},
		{"another one", 500 * time.Millisecond, 1, 3, under, 600 * time.Millisecond},
		{"as it is written", 700 * time.Millisecond, 1, 1, under, 0},
		{"one more again", 800 * time.Millisecond, 1, 2, under, time.Second},
		{"the second is over", 1800 * time.Millisecond, 1, 4, under, 0},
		{"one more after that", 1900 * time.Millisecond, 4, 5, under, time.Second},
		{"it is ready", 2000 * time.Millisecond, 4, 6, ready, 0},
		{"one more after it turned", 2500 * time.Millisecond, 6, 7, under, 0},
	} {
		before := under
		if tc.sentence == "one more after it turned" {
			before = ready
		}
		got := pace.Hold(target(tc.before), target(tc.after), before, tc.says, time.Unix(0, 0).Add(tc.at))
		if got != tc.want {
			t.Errorf("%s: held for %s, want %s", tc.sentence, got, tc.want)
		}
	}
}
