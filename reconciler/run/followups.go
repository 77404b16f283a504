// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/retry"
)

// forbiddenAgain is how long after a refusal that may pass a follow-up is tried again.
const forbiddenAgain = time.Minute

// maxCreatesPerPass bounds the follow-ups that one pass creates: a run may have hundreds, and other runs wait.
const maxCreatesPerPass = 20

// nextPass is when the rest is created.
const nextPass = time.Millisecond

// finish creates the runs that follow from a finished one, and deletes those that history does not keep. isWhole is false if the run is as
// the cache has it.
func (r *Reconciler) finish(ctx context.Context, run *shipper.SequenceRun, isWhole bool) (time.Duration, error) {
	known, err := r.list(ctx, run.Namespace, client.MatchingFields{serviceOf: ofService(run)})
	if err != nil {
		return 0, err
	}
	again := time.Duration(0)
	if shipyard.HasUncreated(run) {
		if !isWhole {
			if err := r.readLive(ctx, run); err != nil {
				return 0, err
			}
		}
		if again, err = r.createFollowUps(ctx, run, known); err != nil {
			return 0, err
		}
	}
	prune, err := r.prune(ctx, run, known)
	return report.Sooner(again, prune), err
}

// createFollowUps creates what was triggered and is due, and notes it.
func (r *Reconciler) createFollowUps(ctx context.Context, run *shipper.SequenceRun, known []*shipper.SequenceRun) (time.Duration, error) {
	d := shipyard.Decision{Status: *run.Status.DeepCopy()}
	of, err := r.revisions.of(ctx, run)
	if err != nil {
		return 0, err
	}
	var again time.Duration
	created := 0
	for i := range d.Status.Triggered {
		t := &d.Status.Triggered[i]
		if t.CreateTime != nil || t.Refused {
			continue
		}
		if created == maxCreatesPerPass {
			again = nextPass
			break
		}
		if of == nil {
			t.Refused, t.Message = true, "ControllerRevision "+run.Status.Resolved.Revision.Name+" is gone: start this one by hand"
			continue
		}
		why, later := shipyard.Awaits(run, of, t, known, r.clock.Now())
		if t.Message = why; why != "" {
			again = report.Sooner(again, later)
			continue
		}
		if t.Message = shipyard.Unneeded(run, of, t, known); t.Message != "" {
			t.Refused = true
			continue
		}
		err := r.client.Create(ctx, shipyard.FollowUp(run, t))
		if apierrors.IsAlreadyExists(err) {
			if t.Message, err = r.another(ctx, run, t); t.Message != "" {
				t.Refused = true
				continue
			}
		}
		switch {
		case err == nil:
			now := metav1.NewTime(r.clock.Now().Truncate(time.Second))
			t.CreateTime = &now
			created++
		case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
			t.Refused, t.Message = true, retry.Brief(err)
		case apierrors.IsForbidden(err): // a quota, or what its stage requires by the clock of the webhook
			t.Message, again = retry.Brief(err), report.Sooner(again, forbiddenAgain)
		default:
			err = fmt.Errorf("creating SequenceRun %s/%s, which follows from %s: %w", run.Namespace, t.Name, run.Name, err)
			return 0, errors.Join(err, r.write(ctx, run, d)) // the next pass has to know of those before
		}
	}
	return again, r.write(ctx, run, d)
}

// another says why a run that exists is not the one that is to follow: an earlier one of the delivery has the name, and has ended. It is
// empty if the run is the one, which this run, or another one that leads there, has created.
func (r *Reconciler) another(ctx context.Context, run *shipper.SequenceRun, t *shipper.TriggeredRun) (string, error) {
	there := &shipper.SequenceRun{}
	if err := r.live.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: t.Name}, there); err != nil {
		return "", fmt.Errorf("reading SequenceRun %s/%s, which follows from %s: %w", run.Namespace, t.Name, run.Name, err)
	}
	by, is := there.Labels[shipper.TriggeredByLabel], there.Status.Resolved
	switch same := by != "" && there.Spec.Stage == t.Stage && (is == nil || is.Context == run.Status.Resolved.Context); {
	case !same:
		return "another run has its name: delete it, or start this one by hand", nil
	case by != run.Name && shipyard.IsFinished(there):
		return "it has run already in this delivery: retry it", nil
	}
	return "", nil
}

// prune deletes the finished runs of the stage and the service that history does not keep.
func (r *Reconciler) prune(ctx context.Context, run *shipper.SequenceRun, known []*shipper.SequenceRun) (time.Duration, error) {
	yard := &shipper.Shipyard{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: run.Spec.Shipyard}, yard)
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("reading Shipyard %s/%s: %w", run.Namespace, run.Spec.Shipyard, err)
	}
	var alike []*shipper.SequenceRun
	for _, one := range known {
		if one.Spec.Stage == run.Spec.Stage && one.Spec.Service == run.Spec.Service {
			alike = append(alike, one)
		}
	}
	surplus, again := shipyard.Surplus(alike, shipyard.Needed(known), &yard.Spec.History, r.clock.Now())
	for _, one := range surplus {
		if err := r.client.Delete(ctx, one, client.Preconditions{UID: &one.UID}); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("deleting SequenceRun %s/%s: %w", one.Namespace, one.Name, err)
		}
	}
	return again, nil
}
