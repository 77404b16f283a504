// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"cmp"
	"slices"
	"time"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Defaults and bounds of history.
const (
	DefaultHistoryLimit  = 20
	DefaultHistoryMaxAge = 720 * time.Hour
	// MaxAwaiting bounds, in place of the limit, the finished runs of a stage and a service that are kept with those whose follow-ups wait.
	MaxAwaiting = 200
)

// Needed are the names of the runs that unfinished ones repeat, or follow from.
func Needed(known []*shipper.SequenceRun) map[string]bool {
	out := map[string]bool{}
	for _, run := range known {
		if IsFinished(run) {
			continue
		}
		if of := run.Spec.RetryOf; of != nil {
			out[of.Run] = true
		}
		if by := run.Labels[shipper.TriggeredByLabel]; by != "" {
			out[by] = true
		}
	}
	return out
}

// Surplus are the finished runs of one stage and service that history does not keep. The newest of each sequence that passed is kept in any
// case, or later stages could not require it, and of the newest MaxAwaiting up to maxAge those with follow-ups that are still to be
// created. A run by which a pass that is kept counts no longer is kept with it. needed are the names of runs that unfinished ones depend
// on. Runs that have begun are counted apart from others. again is when the next one is too old; 0 for never.
func Surplus(
	runs []*shipper.SequenceRun, needed map[string]bool, history *shipper.RunHistory, now time.Time,
) (surplus []*shipper.SequenceRun, again time.Duration) {
	limit, maxAge := DefaultHistoryLimit, DefaultHistoryMaxAge
	if history.Limit != nil {
		limit = int(*history.Limit)
	}
	if history.MaxAge != nil {
		maxAge = history.MaxAge.Duration
	}
	finished := slices.DeleteFunc(slices.Clone(runs), func(run *shipper.SequenceRun) bool {
		return !IsFinished(run) || run.Status.FinishTime == nil
	})
	slices.SortFunc(finished, func(a, b *shipper.SequenceRun) int {
		return cmp.Or(b.Status.FinishTime.Compare(a.Status.FinishTime.Time), cmp.Compare(b.Name, a.Name))
	})
	passes, kept := newestPasses(finished), map[string]bool{}
	begun, unbegun := 0, 0
	for _, run := range finished {
		n := &begun
		if run.Status.StartTime == nil { // such runs replace none of those that have done something
			n = &unbegun
		}
		i := *n
		*n++
		age := now.Sub(run.Status.FinishTime.Time)
		switch {
		case passes[run.Name], needed[run.Name], HasUncreated(run) && age < maxAge && i < MaxAwaiting:
		case i >= limit, age >= maxAge:
			surplus = append(surplus, run)
			continue
		case again == 0 || maxAge-age < again:
			again = maxAge - age
		}
		if by := EndedBy(run, runs); by != nil && hasPassed(run) {
			kept[by.Name] = true
		}
	}
	surplus = slices.DeleteFunc(surplus, func(run *shipper.SequenceRun) bool { return kept[run.Name] })
	return surplus, again
}

// newestPasses names the newest run of each sequence that passed. The finished runs come newest first.
func newestPasses(finished []*shipper.SequenceRun) map[string]bool {
	out, known := map[string]bool{}, map[string]bool{}
	for _, run := range finished {
		if run.Status.Result == shipper.ResultPass && !known[run.Spec.Sequence] {
			known[run.Spec.Sequence], out[run.Name] = true, true
		}
	}
	return out
}
