// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/rights"
	"shipper.dev/shipper/apis/rules/shipyard"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/index"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/reconciler/access"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// maxClockSkew is how far the clock of the webhook, which admitted a run, may be ahead of the one here.
const maxClockSkew = time.Minute

// unresolvedAgain is how long after a repository did not answer it is asked again.
const unresolvedAgain = 15 * time.Second

// Resolver resolves versions of charts.
type Resolver interface {
	Resolve(ctx context.Context, namespace string, want shipper.Chart) (repository.Resolution, error)
}

// judgement is what the first pass decides about a new run.
type judgement struct {
	// resolved is what the run does; nil if it is refused, or cannot be resolved yet.
	resolved *shipper.ResolvedRun
	// refused is why the run is not started, and unresolved why it cannot be resolved yet, until again; both are empty otherwise.
	refused, unresolved string
	again               time.Duration
	// order is the number of the run in its queue.
	order int64
	// waits is true if runs before this one in its queue are still to be resolved.
	waits bool
}

// resolve judges a new run, by the rules with which the webhook admits runs, and decides what it does. Runs of a queue are resolved in the
// order in which they were created. A run that is aborted needs no resolution.
func (r *Reconciler) resolve(ctx context.Context, run *shipper.SequenceRun) (judgement, error) {
	if run.Status.Resolved != nil || run.Spec.Abort != "" {
		return judgement{}, nil
	}
	queue, err := r.list(ctx, run.Namespace, client.MatchingFields{unfinishedOf: inQueue(run)})
	if err != nil {
		return judgement{}, err
	}
	older := slices.DeleteFunc(slices.Clone(queue), func(other *shipper.SequenceRun) bool {
		return other.Status.Resolved != nil || other.Spec.Abort != "" || !other.DeletionTimestamp.IsZero() ||
			shipyard.CompareCreation(other, run) >= 0
	})
	if slices.ContainsFunc(older, func(other *shipper.SequenceRun) bool { return !wasSeen(other) }) {
		return judgement{waits: true}, nil
	}
	order, err := r.orderOf(ctx, run)
	if err != nil {
		return judgement{}, err
	}
	if len(older) > 0 {
		return queuedBehind(older[0], order), nil
	}
	if err := r.readLive(ctx, run); err != nil { // the cache has no data
		return judgement{}, err
	}
	if run.Status.Resolved != nil || shipyard.IsFinished(run) {
		return judgement{}, nil
	}
	j, err := r.judge(ctx, run)
	j.order = order
	return j, err
}

// wasSeen reports whether a run was written since its creation: its number is decided, or one of an earlier version of Shipper.
func wasSeen(run *shipper.SequenceRun) bool {
	return run.Status.Order > 0 || shipper.FindCondition(run.Status.Conditions, shipper.RunFinished) != nil
}

// orderOf is the number of a run in its queue. It is higher than that of each finished run: their order counts for retries, too.
func (r *Reconciler) orderOf(ctx context.Context, run *shipper.SequenceRun) (int64, error) {
	if run.Status.Order > 0 {
		return run.Status.Order, nil
	}
	known, err := r.list(ctx, run.Namespace, client.MatchingFields{serviceOf: ofService(run)})
	return shipyard.NextOrder(slices.DeleteFunc(known, func(other *shipper.SequenceRun) bool {
		return other.Spec.Stage != run.Spec.Stage
	})), err
}

// queuedBehind is the judgement of a run while one before it in the queue is not resolved.
func queuedBehind(other *shipper.SequenceRun, order int64) judgement {
	if c := shipper.FindCondition(other.Status.Conditions, shipper.RunFinished); c != nil && c.Reason == shipper.RunUnresolved {
		return judgement{unresolved: "behind run " + other.Name + ", which cannot be resolved now", order: order} // that may take long
	}
	return judgement{waits: true}
}

// errUnresolved is why a run cannot be resolved yet.
type errUnresolved struct{ why string }

// Error is why.
func (e errUnresolved) Error() string { return e.why }

// judge resolves a run that is whole, or says why not.
func (r *Reconciler) judge(ctx context.Context, run *shipper.SequenceRun) (judgement, error) {
	resolved, err := r.resolved(ctx, run)
	var refusal *shipyard.Refusal
	var unresolved errUnresolved
	switch {
	case errors.As(err, &refusal):
		return judgement{refused: refusal.Error()}, nil
	case errors.As(err, &unresolved):
		return judgement{unresolved: unresolved.why, again: unresolvedAgain}, nil
	}
	return judgement{resolved: resolved}, err
}

// resolved is what a run does. The error is a refusal if the run is not started, and errUnresolved if that cannot be decided yet.
func (r *Reconciler) resolved(ctx context.Context, run *shipper.SequenceRun) (*shipper.ResolvedRun, error) {
	known, err := r.earlier(ctx, run)
	if err != nil {
		return nil, err
	}
	whole := *run
	var of *shipper.ShipyardSnapshot
	if by := run.Labels[shipper.TriggeredByLabel]; by != "" {
		of, err = r.inherit(ctx, &whole, by)
	} else {
		of, err = r.requested(ctx, &whole, known)
	}
	if err != nil {
		return nil, err
	}
	if shipyard.Deploys(&whole) && whole.Status.Resolved.Version.Version == "" {
		if err := r.resolveVersion(ctx, &whole); err != nil {
			return nil, err
		}
	}
	if _, refusal := shipyard.Admit(&whole, of, known, r.clock.Now().Add(maxClockSkew)); refusal != nil {
		return nil, refusal
	}
	return whole.Status.Resolved, nil
}

// inherit resolves a run that follows from another one, and returns the revision of its Shipyard.
func (r *Reconciler) inherit(ctx context.Context, run *shipper.SequenceRun, by string) (*shipper.ShipyardSnapshot, error) {
	before, err := r.namedNow(ctx, run.Namespace, by)
	if err != nil {
		return nil, err
	}
	var of *shipper.ShipyardSnapshot
	if before != nil && before.Status.Resolved != nil {
		if of, err = r.revisions.of(ctx, before); err != nil {
			return nil, err
		}
	}
	resolved, refusal := shipyard.Inherit(run, before, of)
	if refusal != nil {
		return nil, refusal
	}
	run.Status.Resolved = resolved
	return of, nil
}

// requested resolves a run that a user requests, but for its version, and keeps the revision of its Shipyard.
func (r *Reconciler) requested(
	ctx context.Context, run *shipper.SequenceRun, known []*shipper.SequenceRun,
) (*shipper.ShipyardSnapshot, error) {
	asked := &shipyard.Request{Run: run, Known: known}
	var err error
	if asked.Yard, err = r.shipyard(ctx, run); err == nil && asked.Yard == nil {
		asked.Others, err = r.shipyards(ctx, run.Namespace)
	}
	if of := run.Spec.RetryOf; of != nil && err == nil {
		asked.RetryOf, err = r.namedNow(ctx, run.Namespace, of.Run)
	}
	if err != nil {
		return nil, err
	}
	resolved, refusal := shipyard.Resolve(asked)
	if refusal != nil {
		return nil, refusal
	}
	run.Status.Resolved = resolved
	if asked.RetryOf != nil {
		return r.revisions.of(ctx, run)
	}
	of := shipyard.Snapshot(asked.Yard)
	return of, r.saveRevision(ctx, run, asked.Yard, of)
}

// saveRevision stores the revision of a Shipyard for a run, and deletes those that no run has. One run of a Shipyard at a time does so: a
// revision that is about to be deleted is not taken for stored.
func (r *Reconciler) saveRevision(
	ctx context.Context, run *shipper.SequenceRun, yard *shipper.Shipyard, snapshot *shipper.ShipyardSnapshot,
) error {
	key := run.Namespace + "/" + run.Spec.Shipyard
	if err := r.deciding.Enter(ctx, key); err != nil {
		return err
	}
	defer r.deciding.Leave(key)
	next := &run.Status.Resolved.Revision
	if r.revisions.has(run.Namespace, next) {
		return nil
	}
	runs, err := r.list(ctx, run.Namespace, client.MatchingFields{runsOf: run.Spec.Shipyard})
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(runs, func(other *shipper.SequenceRun) bool { return other.UID == run.UID })
	if err := r.revisions.trim(ctx, yard, next.Name, others); err != nil {
		return err
	}
	return r.revisions.save(ctx, yard, snapshot)
}

// shipyard is that of a run, read from the API server; nil if there is none.
func (r *Reconciler) shipyard(ctx context.Context, run *shipper.SequenceRun) (*shipper.Shipyard, error) {
	yard, key := &shipper.Shipyard{}, client.ObjectKey{Namespace: run.Namespace, Name: run.Spec.Shipyard}
	switch err := r.live.Get(ctx, key, yard); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading Shipyard %s: %w", key, err)
	}
	return yard, nil
}

// shipyards names those of a namespace.
func (r *Reconciler) shipyards(ctx context.Context, namespace string) ([]string, error) {
	var all shipper.ShipyardList
	if err := r.client.List(ctx, &all, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the Shipyards of namespace %s: %w", namespace, err)
	}
	out := make([]string, len(all.Items))
	for i := range all.Items {
		out[i] = all.Items[i].Name
	}
	return out, nil
}

// earlier are the other runs of the Shipyard that a run is judged by. A run that was created later counts only if it has begun.
func (r *Reconciler) earlier(ctx context.Context, run *shipper.SequenceRun) ([]*shipper.SequenceRun, error) {
	known, err := r.list(ctx, run.Namespace, client.MatchingFields{runsOf: run.Spec.Shipyard})
	return slices.DeleteFunc(known, func(other *shipper.SequenceRun) bool {
		return other.UID == run.UID || isLater(other, run) && other.Status.StartTime == nil
	}), err
}

// isLater reports whether a run of a Shipyard was created after another. Only in one queue that is known within a second.
func isLater(run, than *shipper.SequenceRun) bool {
	if inQueue(run) == inQueue(than) {
		return shipyard.CompareCreation(run, than) > 0
	}
	return than.CreationTimestamp.Before(&run.CreationTimestamp)
}

// repeated is the run that a retry repeats, and why the retry may not begin; empty if it may.
func (r *Reconciler) repeated(ctx context.Context, run *shipper.SequenceRun) (*shipper.SequenceRun, string, error) {
	of := run.Spec.RetryOf
	before, err := r.namedNow(ctx, run.Namespace, of.Run)
	if err != nil {
		return nil, "", err
	}
	if before == nil || string(before.UID) != run.Status.Resolved.RetryOfUID {
		return nil, "run " + of.Run + ", which it repeats, is gone", nil
	}
	known, err := r.earlier(ctx, run)
	if err != nil {
		return nil, "", err
	}
	if why := shipyard.NotAgain(before, of.From, run.UID, known); why != "" {
		return before, why, nil
	}
	why, err := r.takenBack(ctx, before, of.From)
	return before, why, err
}

// takenBack says that the Release is no longer the newest that a run made, and that a retry would make again on the approval that it keeps;
// empty if the retry makes none again. Where that Release has failed or was aborted, what was approved is over.
func (r *Reconciler) takenBack(ctx context.Context, before *shipper.SequenceRun, from string) (string, error) {
	made := shipyard.MadeFrom(before, from)
	if made == "" || !shipyard.CarriesApproval(before, from) {
		return "", nil
	}
	rels, err := r.releases(ctx, shipyard.ApplicationOfRun(before))
	if err != nil {
		return "", err
	}
	if newest := stamp.NewestOf(rels); newest != nil && newest.Name == made {
		return "", nil
	}
	return fmt.Sprintf("Release %s, which run %s made, is not the newest any more, and what was approved is done once: "+
		"begin with the approval", made, before.Name), nil
}

// useUp writes the retry into the run that it repeats, before it begins with the approvals of that run: what was approved is done once,
// also when the retry is deleted.
func (r *Reconciler) useUp(ctx context.Context, run *shipper.SequenceRun) error {
	before, err := r.namedNow(ctx, run.Namespace, run.Spec.RetryOf.Run)
	switch {
	case err != nil:
		return err
	case before == nil || string(before.UID) != run.Status.Resolved.RetryOfUID, !shipyard.CarriesApproval(before, run.Spec.RetryOf.From):
		return nil
	}
	by := shipper.RepeatedBy{Name: run.Name, UID: string(run.UID)}
	if known := before.Status.RepeatedBy; known != nil && known.UID != by.UID {
		return fmt.Errorf("run %s has the approvals of run %s already", known.Name, before.Name)
	}
	was := before.DeepCopy()
	before.Status.RepeatedBy = &by
	if _, err := report.PatchStatus(ctx, r.direct, before, was); err != nil {
		return fmt.Errorf("writing the status of SequenceRun %s/%s, which is repeated: %w", before.Namespace, before.Name, err)
	}
	return nil
}

// resolveVersion writes the version that a run deploys now. Errors are as of resolved.
func (r *Reconciler) resolveVersion(ctx context.Context, run *shipper.SequenceRun) error {
	key := shipyard.ApplicationOfRun(run)
	may, err := access.May(ctx, r.direct, rights.ServiceAccount(run.Namespace, run.Status.Resolved.ServiceAccountName), rights.Action{
		Verb: "patch", Group: shipper.GroupName, Resource: "applications", Namespace: key.Namespace, Name: key.Name,
	})
	switch {
	case err != nil:
		return err
	case !may: // its version is not for all who may start runs
		return shipyard.RunnerMayNot(run)
	}
	app := &shipper.Application{}
	switch err := r.live.Get(ctx, key, app); {
	case apierrors.IsNotFound(err):
		app = nil
	case err != nil:
		return fmt.Errorf("reading Application %s: %w", key, err)
	}
	want, refusal := shipyard.WantedChart(run, app)
	if refusal != nil {
		return refusal
	}
	version := &run.Status.Resolved.Version
	version.Name, version.Version = want.Name, want.Version
	found, err := r.charts.Resolve(ctx, key.Namespace, want)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case chart.Final(err):
		return shipyard.NoSuchVersion(&want, err)
	case err != nil && index.IsExact(want.Version) && len(shipyard.StageOf(run).Requires) == 0:
		return nil // the archive is not known: a stage that requires it would refuse the run
	case err != nil:
		return errUnresolved{fmt.Sprintf("chart %s %q cannot be resolved to a version now: %v", want.Name, want.Version, err)}
	}
	version.Version, version.Digest = found.Version, found.Digest
	return nil
}
