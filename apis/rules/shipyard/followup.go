// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// FollowUp is the run that a finished run triggers. All of its spec comes from that run.
func FollowUp(run *shipper.SequenceRun, t *shipper.TriggeredRun) *shipper.SequenceRun {
	spec, at := run.DeepCopy().Spec, metav1.Time{}
	if run.Status.FinishTime != nil {
		at = *run.Status.FinishTime
	}
	data := run.Status.Data.DeepCopy()
	if data == nil {
		data = spec.Data
	}
	for key := range data {
		if Reserved(key) && key != earlierKey {
			delete(data, key)
		}
	}
	return &shipper.SequenceRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: t.Name},
		Spec: shipper.SequenceRunSpec{
			Shipyard: spec.Shipyard, Stage: t.Stage, Sequence: t.Sequence, Service: spec.Service,
			Data: data, RequestedBy: spec.RequestedBy, EarlierRequesters: spec.EarlierRequesters,
			TriggeredBy: &shipper.RunTrigger{Event: t.Event, Run: run.Name, Depth: NextDepth(&spec), Time: at},
			Context:     spec.Context, Version: spec.Version, Snapshot: spec.Snapshot,
		},
	}
}

// depth is how many triggers lead to a run from the one that a user created.
func depth(run *shipper.SequenceRunSpec) int32 {
	if run.TriggeredBy == nil {
		return 0
	}
	return run.TriggeredBy.Depth
}

// NextDepth is the depth of the runs that follow from one.
func NextDepth(run *shipper.SequenceRunSpec) int32 { return depth(run) + 1 }

// Awaits says why a run that was triggered cannot be created yet: what its stage requires. It is empty when it can. Known are the runs of
// the service, and again is when the time alone may change that; 0 for never.
func Awaits(
	run *shipper.SequenceRun, t *shipper.TriggeredRun, known []*shipper.SequenceRun, now time.Time,
) (why string, again time.Duration) {
	next := FollowUp(run, t)
	unmet, ready := Unmet(&next.Spec, known, now)
	if !ready.IsZero() {
		again = ready.Sub(now)
	}
	return shorten(strings.Join(unmet, "; ")), again
}

// Unneeded says why a run that was triggered, and is due, is not to be created at all; empty if it is. Known are the runs of the service.
// Where a stage requires several, another run that waited until this retry had passed creates what follows from both; of two retries, that
// of the lower name. Circles of triggers end.
func Unneeded(run *shipper.SequenceRun, t *shipper.TriggeredRun, known []*shipper.SequenceRun) string {
	next := FollowUp(run, t)
	joins := run.Spec.RetryOf != nil && len(StageOf(&next.Spec).Requires) > 0 && Deploys(&next.Spec)
	for _, other := range known {
		if !joins || other.UID == run.UID || other.Spec.Context != run.Spec.Context {
			continue
		}
		first := other.Spec.RetryOf == nil || other.Name < run.Name // of two that wait
		for i := range other.Status.Triggered {
			same := &other.Status.Triggered[i]
			waited := same.CreateTime == nil && first || same.CreateTime != nil && !same.CreateTime.Before(run.Status.FinishTime)
			if waited && !same.Refused && same.Stage == t.Stage && same.Sequence == t.Sequence {
				return "run " + other.Name + " of the delivery creates it"
			}
		}
	}
	return TooMany(&next.Spec, known)
}

// StageOf is the stage of a run in its snapshot; an empty one if it has none.
func StageOf(run *shipper.SequenceRunSpec) *shipper.Stage {
	if stage := OfStage(run.Snapshot, run.Stage); stage != nil {
		return stage
	}
	return &shipper.Stage{}
}

// ApplicationOfRun names the Application of a run.
func ApplicationOfRun(run *shipper.SequenceRun) types.NamespacedName {
	return ApplicationKey(run.Namespace, StageOf(&run.Spec), run.Spec.Shipyard, run.Spec.Service)
}

// HasUncreated reports whether a run that follows from a finished one was not created yet, and was not refused.
func HasUncreated(run *shipper.SequenceRun) bool {
	for i := range run.Status.Triggered {
		if run.Status.Triggered[i].CreateTime == nil && !run.Status.Triggered[i].Refused {
			return true
		}
	}
	return false
}
