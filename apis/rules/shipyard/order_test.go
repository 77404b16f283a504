// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestRunsAreOrderedAsTheyWereCreated has two runs, of which the first was created before the second.
func TestRunsAreOrderedAsTheyWereCreated(t *testing.T) {
	run := func(name, version string, order int64, resolved bool, seconds int64) *shipper.SequenceRun {
		out := &shipper.SequenceRun{ObjectMeta: metav1.ObjectMeta{
			Name: name, ResourceVersion: version, CreationTimestamp: metav1.Unix(seconds, 0),
		}}
		if out.Status.Order = order; resolved {
			out.Status.Resolved = &shipper.ResolvedRun{}
		}
		return out
	}
	for sentence, pair := range map[string][2]*shipper.SequenceRun{
		"both are new, of one second":        {run("b", "9", 0, false, 5), run("a", "10", 0, false, 5)},
		"both have numbers, of one second":   {run("b", "30", 1, true, 5), run("a", "20", 2, true, 5)},
		"both were restored, one by one":     {run("b", "30", 1, true, 9), run("a", "20", 2, true, 5)},
		"the second is new":                  {run("b", "30", 7, true, 5), run("a", "20", 0, false, 5)},
		"the first is of an earlier version": {run("b", "30", 0, true, 5), run("a", "20", 1, true, 5)},
		"both are of an earlier version":     {run("b", "30", 0, true, 4), run("a", "20", 0, true, 5)},
		"both are, and of one second":        {run("a", "30", 0, true, 5), run("b", "20", 0, true, 5)},
		"only the first is, of one second":   {run("b", "30", 0, true, 5), run("a", "20", 0, false, 5)},
	} {
		if CompareCreation(pair[0], pair[1]) >= 0 || CompareCreation(pair[1], pair[0]) <= 0 {
			t.Errorf("%s: they are ordered otherwise", sentence)
		}
	}
}

// Of two deliveries of one second, the name that sorts first was the newer one: it ended as the older.
func TestTheNewerOfOneSecondSupersedes(t *testing.T) {
	s := begin(t, shipper.Task{Name: "deployment"})
	s.stages[0].Sequences[0].WhenBusy = shipper.WhenBusySupersede
	first := s.creates("z", "delivery", func(run *shipper.SequenceRun) { run.Status.Order = 1 })
	second := s.creates("a", "delivery", func(run *shipper.SequenceRun) { run.Status.Order = 2 })
	if p := (&plan{Observed: Observed{Run: first, Others: s.runs}}); p.superseding(Queue(s.runs)) != "a" {
		t.Error("the newer one does not supersede the older one")
	}
	if p := (&plan{Observed: Observed{Run: second, Others: s.runs}}); p.superseding(Queue(s.runs)) != "" {
		t.Error("the older one supersedes the newer one")
	}
	if queue := Queue(s.runs); queue[0] != first {
		t.Errorf("%s is first in the queue", queue[0].Name)
	}
	if got := NextOrder(s.runs); got != 3 {
		t.Errorf("the next one has number %d", got)
	}
}
