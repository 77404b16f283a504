// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// What the webhook knew when it admitted a run may differ from what is known here: by other clocks, and by a cache that is behind.
const (
	maxClockSkew = time.Minute
	maxCacheLag  = 10 * time.Second
)

// forged says why a new run is not as the webhooks would have written it; empty if it is. While no webhook is called, a user who may start
// runs could give one a snapshot of their own, without approvals, and with it the rights of the runner. retryOf is the run that it repeats.
func (r *Reconciler) forged(ctx context.Context, run, retryOf *shipper.SequenceRun) (string, error) {
	if run.Spec.Snapshot == nil {
		return "it was created while Shipper's webhook was not called: create it again", nil
	}
	if by := run.Spec.TriggeredBy; by != nil {
		before, err := r.namedNow(ctx, run.Namespace, by.Run)
		if err != nil {
			return "", err
		}
		if before == nil {
			return "there is no run " + by.Run + ", from which it says that it follows", nil
		}
		for i := range before.Status.Triggered {
			t := &before.Status.Triggered[i]
			want := shipyard.FollowUp(before, t).Spec
			if by.Depth == 0 { // it was created before the field was there
				want.TriggeredBy.Depth = 0
			}
			if t.Name == run.Name && shipyard.Same(want, without(run.Spec)) {
				return "", nil
			}
		}
		return "it does not follow from run " + by.Run, nil
	}
	yard := &shipper.Shipyard{}
	key := client.ObjectKey{Namespace: run.Namespace, Name: run.Spec.Shipyard}
	if err := r.live.Get(ctx, key, yard); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading Shipyard %s: %w", key, err)
	}
	if run.Spec.RetryOf != nil {
		return r.notRepeating(ctx, run, retryOf, yard)
	}
	now := shipyard.Snapshot(yard)
	now.Generation = run.Spec.Snapshot.Generation // an edit of what runs do not have makes no other snapshot
	if !shipyard.Same(now, run.Spec.Snapshot) {
		return "its snapshot is not Shipyard " + run.Spec.Shipyard + " as it is: create the run again", nil
	}
	deploys, version := shipyard.Deploys(&run.Spec), run.Spec.Version
	if len(run.Spec.EarlierRequesters) > 0 || deploys && version.Version == "" || !deploys && version != (shipper.RunVersion{}) {
		return "it has requesters of other runs, or no version, or one that it does not deploy: create the run again", nil
	}
	if errs := shipyard.ValidateRun(run, &yard.Spec); len(errs) > 0 {
		return errs.ToAggregate().Error(), nil
	}
	known, err := r.earlier(ctx, run)
	if err != nil {
		return "", err
	}
	sameContext := func(other *shipper.SequenceRun) bool { return other.Spec.Context == run.Spec.Context }
	if run.Spec.Context == "" || slices.ContainsFunc(known, sameContext) {
		return "its context is that of another delivery, or absent: create the run again", nil
	}
	return r.notAdmitted(run, known)
}

// notRepeating says why a new run does not repeat another one as the webhook would have it; empty if it does.
func (r *Reconciler) notRepeating(ctx context.Context, run, before *shipper.SequenceRun, yard *shipper.Shipyard) (string, error) {
	if before == nil || !shipyard.IsFinished(before) || run.Spec.Snapshot.UID != string(yard.UID) ||
		!shipyard.Same(repeated(before, run), without(run.Spec)) {
		return "it does not repeat run " + run.Spec.RetryOf.Run + ": create it again", nil
	}
	known, err := r.earlier(ctx, run)
	if err != nil {
		return "", err
	}
	if why := shipyard.NotAgain(before, run.Spec.RetryOf.From, known); why != "" || len(run.Status.Conditions) > 0 {
		return why, nil
	}
	return r.notAdmitted(run, known)
}

// earlier are the other runs of the Shipyard, but for those that came later and have not begun: nothing that came later stops a run.
func (r *Reconciler) earlier(ctx context.Context, run *shipper.SequenceRun) ([]*shipper.SequenceRun, error) {
	known, err := r.list(ctx, run.Namespace, client.MatchingFields{runsOf: run.Spec.Shipyard})
	return slices.DeleteFunc(known, func(other *shipper.SequenceRun) bool {
		return other.UID == run.UID || run.CreationTimestamp.Before(&other.CreationTimestamp) && other.Status.StartTime == nil
	}), err
}

// notAdmitted says why the webhook would not have admitted a new run among those that were there; empty if it would.
func (r *Reconciler) notAdmitted(run *shipper.SequenceRun, known []*shipper.SequenceRun) (string, error) {
	if why := shipyard.TooMany(&run.Spec, known); why != "" {
		return why, nil
	}
	now := r.clock.Now()
	unmet, _ := shipyard.Unmet(&run.Spec, known, now.Add(maxClockSkew))
	switch why := strings.Join(unmet, "; "); {
	case len(unmet) == 0, run.Spec.SkipRequires != nil: // the policy asks for the right to skip
		return "", nil
	case now.Sub(run.CreationTimestamp.Time) < maxCacheLag:
		return "", fmt.Errorf("SequenceRun %s/%s is judged once all runs that have passed are known: %s", run.Namespace, run.Name, why)
	default:
		return why, nil
	}
}

// repeated is what a run that repeats another one has, but for who asked for it: these are compared as sets.
func repeated(before, run *shipper.SequenceRun) shipper.SequenceRunSpec {
	out := without(before.Spec)
	out.RetryOf, out.SkipRequires, out.TriggeredBy = run.Spec.RetryOf, run.Spec.SkipRequires, nil
	out.RequestedBy, out.EarlierRequesters = run.Spec.RequestedBy, run.Spec.EarlierRequesters
	for _, user := range shipyard.Requesters(&before.Spec) {
		if !slices.Contains(shipyard.Requesters(&run.Spec), user) {
			out.EarlierRequesters = append(slices.Clone(out.EarlierRequesters), user) // it is missing there
		}
	}
	return out
}

// without leaves out what users may change in a run.
func without(spec shipper.SequenceRunSpec) shipper.SequenceRunSpec {
	spec.Hold, spec.Abort = "", ""
	return spec
}
