// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// FollowUp is the run that a finished run triggers.
func FollowUp(run *shipper.SequenceRun, t *shipper.TriggeredRun) *shipper.SequenceRun {
	data := DataOf(run).DeepCopy()
	for key := range data {
		if Reserved(key) && key != earlierKey {
			delete(data, key)
		}
	}
	out := &shipper.SequenceRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: t.Name},
		Spec: shipper.SequenceRunSpec{
			Shipyard: run.Spec.Shipyard, Stage: t.Stage, Sequence: t.Sequence, Service: run.Spec.Service, Data: data,
			RequestedBy: run.Spec.RequestedBy,
		},
	}
	out.Labels = LabelsOf(out)
	out.Labels[shipper.TriggeredByLabel] = run.Name
	out.OwnerReferences = Owners(run.Spec.Shipyard, types.UID(run.Status.Resolved.Revision.UID))
	return out
}

// LabelsOf are the labels by which runs are found.
func LabelsOf(run *shipper.SequenceRun) map[string]string {
	return map[string]string{
		shipper.ShipyardLabel: run.Spec.Shipyard, shipper.StageLabel: run.Spec.Stage, shipper.SequenceLabel: run.Spec.Sequence,
		shipper.ServiceLabel: run.Spec.Service,
	}
}

// Owners are those of a run: it is deleted with its Shipyard. A run that follows outlives the run before, which history may delete first.
func Owners(shipyard string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: shipper.GroupVersion.String(), Kind: "Shipyard", Name: shipyard, UID: uid}}
}

// Inherit is what a run does that follows from a finished one, of whose Shipyard of is the revision.
func Inherit(run, before *shipper.SequenceRun, of *shipper.ShipyardSnapshot) (*shipper.ResolvedRun, *Refusal) {
	gone := forbidden("run " + run.Labels[shipper.TriggeredByLabel] + ", which it follows from, is gone")
	if before == nil || before.Status.Resolved == nil || of == nil {
		return nil, gone
	}
	var from *shipper.TriggeredRun
	for i := range before.Status.Triggered {
		if t := &before.Status.Triggered[i]; t.Name == run.Name && t.Stage == run.Spec.Stage && t.Sequence == run.Spec.Sequence {
			from = t
		}
	}
	if from == nil {
		return nil, forbidden("it does not follow from run " + before.Name)
	}
	out := inherited(before, of, from)
	if out == nil {
		return nil, gone
	}
	if sequenceDeploys(&out.Sequence) && out.Version.Version == "" {
		return nil, forbidden("the first run of the delivery deploys nothing, and so has no version")
	}
	return out, nil
}

// inherited is what a run that t triggers does; nil if of has no such sequence.
func inherited(run *shipper.SequenceRun, of *shipper.ShipyardSnapshot, t *shipper.TriggeredRun) *shipper.ResolvedRun {
	at := metav1.Time{}
	if run.Status.FinishTime != nil {
		at = *run.Status.FinishTime
	}
	was := run.Status.Resolved
	out := Resolved(of, t.Stage, t.Sequence)
	if out == nil {
		return nil
	}
	out.Revision, out.Context, out.Version = was.Revision, was.Context, was.Version
	out.EarlierRequesters = was.EarlierRequesters
	out.TriggeredBy = &shipper.RunTrigger{Event: t.Event, Run: run.Name, Depth: depth(was) + 1, Time: at}
	return out
}

// following is a run that is to follow, as it will be once it is resolved.
func following(run *shipper.SequenceRun, of *shipper.ShipyardSnapshot, t *shipper.TriggeredRun) *shipper.SequenceRun {
	out := FollowUp(run, t)
	if out.Status.Resolved = inherited(run, of, t); out.Status.Resolved == nil {
		out.Status.Resolved = &shipper.ResolvedRun{}
	}
	return out
}

// depth is how many triggers lead to a run from the one that a user created.
func depth(run *shipper.ResolvedRun) int32 {
	if run == nil || run.TriggeredBy == nil {
		return 0
	}
	return run.TriggeredBy.Depth
}

// Awaits says why a run that was triggered cannot be created yet: what its stage requires. It is empty when it can. of is the revision of
// the Shipyard, known are the runs of the service, and again is when the time alone may change that; 0 for never.
func Awaits(
	run *shipper.SequenceRun, of *shipper.ShipyardSnapshot, t *shipper.TriggeredRun, known []*shipper.SequenceRun, now time.Time,
) (why string, again time.Duration) {
	unmet, ready := Unmet(following(run, of, t), known, now)
	if !ready.IsZero() {
		again = ready.Sub(now)
	}
	return shorten(strings.Join(unmet, "; ")), again
}

// Unneeded says why a triggered run that is due is not created; empty if it is. known are the runs of the service. Where a stage requires
// several stages, only one run creates the follow-up of all: the one that waited for a retry to pass and, of two retries, the one with the
// lower name. A circle of triggers ends at a bound (TooMany).
func Unneeded(
	run *shipper.SequenceRun, of *shipper.ShipyardSnapshot, t *shipper.TriggeredRun, known []*shipper.SequenceRun,
) string {
	next := following(run, of, t)
	joins := run.Spec.RetryOf != nil && len(StageOf(next).Requires) > 0 && Deploys(next)
	for _, other := range known {
		if !joins || other.UID == run.UID || ContextOf(other) != ContextOf(run) {
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
	return TooMany(next, of, known)
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
