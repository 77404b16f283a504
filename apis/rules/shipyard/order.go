// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"cmp"
	"slices"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Queue is the unfinished runs of one Shipyard, stage and service in order: a rollback under way, which nothing ends; runs that preempt;
// the run under way; rollbacks that wait (KS17); then as they were created. Runs that are not resolved, or held before they started, are
// left out.
func Queue(runs []*shipper.SequenceRun) []*shipper.SequenceRun {
	out := slices.DeleteFunc(slices.Clone(runs), func(run *shipper.SequenceRun) bool {
		return IsFinished(run) || run.Status.Resolved == nil || run.Status.StartTime == nil && run.Spec.Hold != ""
	})
	slices.SortStableFunc(out, func(a, b *shipper.SequenceRun) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), CompareCreation(a, b))
	})
	return out
}

// CompareCreation orders the runs of one Shipyard, stage and service as they were created. Of two runs one may have no number: it is older
// if an earlier version of Shipper has resolved it, and newer if it is still to get one.
func CompareCreation(a, b *shipper.SequenceRun) int {
	hasA, hasB := a.Status.Order > 0, b.Status.Order > 0
	resolvedA, resolvedB := a.Status.Resolved != nil, b.Status.Resolved != nil
	byTime := a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	switch {
	case hasA && !hasB && !resolvedB, hasB && !hasA && resolvedA:
		return -1
	case hasA != hasB:
		return 1
	case hasA, resolvedA && resolvedB: // a resourceVersion counts the last write, no longer the creation
		return cmp.Or(cmp.Compare(a.Status.Order, b.Status.Order), byTime, cmp.Compare(a.Name, b.Name))
	case byTime == 0 && resolvedA != resolvedB: // of one second
		if resolvedA {
			return -1
		}
		return 1
	}
	return stamp.CompareCreation(a, b)
}

// NextOrder is the number of a new run of a Shipyard, stage and service. known are the others, also finished ones; all older ones have
// their number.
func NextOrder(known []*shipper.SequenceRun) int64 {
	highest := int64(0)
	for _, run := range known {
		highest = max(highest, run.Status.Order)
	}
	return highest + 1
}

// rank is lower for runs that go first.
func rank(run *shipper.SequenceRun) int {
	sequence := OwnSequence(run)
	back, begun := sequence != nil && slices.ContainsFunc(sequence.Tasks, takesBack), run.Status.StartTime != nil
	switch {
	case back && begun:
		return 0
	case breaksIn(run):
		return 1
	case begun:
		return 2
	case back:
		return 3
	}
	return 4
}

// breaksIn reports whether a run ends one under way that does not take back.
func breaksIn(run *shipper.SequenceRun) bool {
	sequence := OwnSequence(run)
	return sequence != nil && sequence.WhenBusy == shipper.WhenBusyPreempt
}

func takesBack(t shipper.Task) bool { return t.Name == TaskRollback || t.Name == TaskRemediation }

// IsFinished reports whether a run has ended.
func IsFinished(run *shipper.SequenceRun) bool {
	return shipper.ConditionTrue(run.Status.Conditions, shipper.RunFinished)
}
