// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"cmp"
	"slices"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Queue is the unfinished runs of one Shipyard, stage and service in order: a rollback under way, which nothing ends; runs that preempt;
// the run under way; rollbacks that wait (KS17); then by age and name. Runs that are not resolved, or held before they started, are left
// out.
func Queue(runs []*shipper.SequenceRun) []*shipper.SequenceRun {
	out := slices.DeleteFunc(slices.Clone(runs), func(run *shipper.SequenceRun) bool {
		return IsFinished(run) || run.Status.Resolved == nil || run.Status.StartTime == nil && run.Spec.Hold != ""
	})
	slices.SortStableFunc(out, func(a, b *shipper.SequenceRun) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return out
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
