// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// one is what a target says of which one cluster's Ready is as given.
func one(generation int64, ready shipper.Condition) Status {
	sum := condition("Ready", ready.Status, "", "")
	if ready.Status != "True" {
		sum = condition("Ready", "False", "ClustersNotReady", "a: "+ready.Reason)
	}
	operational := condition("Operational", "True", "", "")
	return Status{
		Generation: generation, Conditions: []shipper.Condition{operational, sum},
		Clusters: []Cluster{{"a", []shipper.Condition{operational, ready}}},
	}
}

func TestTurns(t *testing.T) {
	ready := condition("Ready", "True", "", "")
	no := func(reason, message string) shipper.Condition { return condition("Ready", "False", reason, message) }
	unreachable := one(1, condition("Ready", "Unknown", "ClusterUnreachable", ""))
	starts, stuck := no("InProgress", "1 of 2"), no("DeploymentStuck", "quota")
	two := func(a, b shipper.Condition) Status {
		said := one(1, a)
		said.Clusters = append(said.Clusters, Cluster{"b", one(1, b).Clusters[0].Conditions})
		if b.Status != "True" {
			said.Conditions = one(1, b).Conditions
		}
		return said
	}
	asked := func(s Status) Status {
		s.Generation++
		return s
	}
	down := condition("Ready", "Unknown", "ClusterUnreachable", "")
	other := one(1, ready)
	other.Clusters = []Cluster{{"b", other.Clusters[0].Conditions}}
	for sentence, tc := range map[string]struct {
		before, after Status
		want          bool
	}{
		"nothing":                                {one(1, ready), one(1, ready), false},
		"one Pod more":                           {one(1, no("InProgress", "1 of 2")), one(1, no("InProgress", "2 of 3")), false},
		"a Pod that starts":                      {one(1, no("InProgress", "1 of 2")), one(1, no("PodsNotReady", "1/2")), false},
		"Pods that are not in endpoints yet":     {one(1, no("InProgress", "moved")), one(1, no("PodsNotInEndpoints", "1/2")), false},
		"what was asked for last begins":         {one(1, ready), one(2, no("InProgress", "scaling")), false},
		"asked for more while it begins":         {one(1, no("InProgress", "1 of 2")), one(2, no("InProgress", "1 of 3")), false},
		"what was asked for last is there":       {one(1, ready), one(2, ready), true},
		"it is ready":                            {one(1, no("InProgress", "1 of 2")), one(1, ready), true},
		"a Pod is lost":                          {one(1, ready), one(1, no("InProgress", "1 of 2")), true},
		"it is stuck":                            {one(1, no("InProgress", "1 of 2")), one(1, no("DeploymentStuck", "quota")), true},
		"it is stuck with what is new":           {one(1, ready), one(2, no("DeploymentStuck", "quota")), true},
		"it is not stuck any more":               {one(1, no("DeploymentStuck", "quota")), one(1, no("InProgress", "1 of 2")), true},
		"a cluster does not answer":              {one(1, no("InProgress", "1 of 2")), unreachable, true},
		"a cluster answers again":                {unreachable, one(1, no("InProgress", "1 of 2")), true},
		"first of all that nothing is there":     {Status{}, one(1, no("MissingDeployment", "found 0")), false},
		"first of all that it begins":            {Status{}, one(1, no("InProgress", "1 of 2")), false},
		"first of all that it is ready":          {Status{}, one(1, ready), true},
		"first of all that it is stuck":          {Status{}, one(1, no("DeploymentStuck", "quota")), true},
		"what was there is not any more":         {one(1, ready), one(2, no("MissingDeployment", "found 0")), true},
		"one has what was asked for last":        {two(ready, ready), asked(two(ready, starts)), false},
		"one has, and the other does not answer": {two(ready, starts), two(ready, down), true},
		"one of two clusters is ready":           {two(starts, starts), two(ready, starts), false},
		"both are ready":                         {two(ready, starts), two(ready, ready), true},
		"one is ready, the other is stuck":       {two(starts, starts), two(ready, stuck), true},
		"one is not stuck any more, but ready":   {two(stuck, starts), two(ready, starts), true},
		"first of all that one of two is":        {Status{}, two(ready, starts), false},
		"first of all that both are":             {Status{}, two(ready, ready), true},
		"another cluster":                        {one(1, ready), other, true},
	} {
		if got := Turned(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: Turned is %t", sentence, got)
		}
	}
}

func TestWritesNumbersEveryTwoSecondsAtMost(t *testing.T) {
	target := func(available int32) *shipper.CapacityTarget {
		ct := &shipper.CapacityTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0"}}
		ct.Status.Clusters = []shipper.ClusterCapacityStatus{{Name: "a", AvailableReplicas: available}}
		return ct
	}
	throttle := NewThrottle()
	for _, tc := range []struct {
		sentence      string
		at            time.Duration
		written, next int32
		turned        bool
		want          time.Duration
	}{
		{"nothing to write", 0, 1, 1, false, 0},
		{"one more", 100 * time.Millisecond, 1, 2, false, 2 * time.Second},
		{"another one", 500 * time.Millisecond, 1, 3, false, 1600 * time.Millisecond},
		{"as it is written", 700 * time.Millisecond, 1, 1, false, 0},
		{"one more again", 800 * time.Millisecond, 1, 2, false, 2 * time.Second},
		{"the two seconds are over", 2800 * time.Millisecond, 1, 4, false, 0},
		{"one more after that", 2900 * time.Millisecond, 4, 5, false, 2 * time.Second},
		{"something turned", 3 * time.Second, 4, 6, true, 0},
		{"one more after it turned", 4 * time.Second, 6, 7, false, 2 * time.Second},
	} {
		if got := throttle.DelayFor(tc.turned, target(tc.written), target(tc.next), time.Unix(0, 0).Add(tc.at)); got != tc.want {
			t.Errorf("%s: held for %s, want %s", tc.sentence, got, tc.want)
		}
	}
}

func TestForgetsObjectsThatAreGone(t *testing.T) {
	throttle := NewThrottle()
	for i := range 10 {
		is := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("web-", i)}}
		is.Status.ObservedGeneration = 1
		throttle.DelayFor(false, &shipper.Release{}, is, time.Unix(int64(i)*1800, 0))
	}
	if got := len(throttle.since); got != 3 {
		t.Errorf("%d objects are remembered, want those of the last hour", got)
	}
}
