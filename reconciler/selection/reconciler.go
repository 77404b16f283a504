// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/resourcesnapshot"
	"shipper.dev/shipper/reconciler/retry"
)

// histories reads the Releases of an Application from the cache.
type histories interface {
	Releases(ctx context.Context, app client.ObjectKey) ([]*shipper.Release, error)
}

// Reconciler takes the content of Applications with resources.
type Reconciler struct {
	client    client.Client
	snapshots *resourcesnapshot.Snapshots
	releases  histories
	reader    *reader
	global    string
	clock     clock.PassiveClock
	changes   *changes
	watches   *watches
	recorder  events.EventRecorder
	retrier   *retry.Retrier[ctrl.Request]
	lag       prometheus.Histogram

	mu sync.Mutex
	// taken has for each Application a hash of what the last complete pass read of it. While it is the same and no selected object changes,
	// another pass would find nothing new.
	taken map[types.NamespacedName]string
}

// Reconcile takes the content of one Application.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	app := &shipper.Application{}
	err := r.client.Get(ctx, req.NamespacedName, app)
	if err != nil || app.DeletionTimestamp != nil {
		r.forget(ctx, req.NamespacedName)
		return r.retrier.Persisted(req, client.IgnoreNotFound(err))
	}
	rels, err := r.releases.Releases(ctx, req.NamespacedName)
	if err != nil {
		return r.retrier.Persisted(req, err)
	}
	rels = own(app, rels)
	settle := func(err error) error { return cmp.Or(err, r.snapshots.Settle(ctx, app, rels)) }
	if app.Spec.Template.Resources == nil {
		r.forget(ctx, req.NamespacedName)
		return r.settled(req, settle(r.report(ctx, app, nil)))
	}
	is, err := wanted(app)
	switch {
	case err != nil:
		return r.settled(req, settle(r.report(ctx, app, problemf(shipper.SelectionInvalid, retry.Wait, "%s", err))))
	case len(app.Status.Conditions) == 0:
		// The first status of the rollout reconciler makes the next pass. Writes before it would conflict with its writes, and any condition
		// would end that it holds an Application that was restored from a backup without its Releases.
		return r.settled(req, nil)
	case !follows(app, is):
		r.watches.set(ctx, req.NamespacedName, nil, nil)
		return r.settled(req, settle(nil))
	}
	if wait := r.changes.wait(req.NamespacedName); wait > 0 && app.Spec.Template.Pins.Digest() != "" {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	first, changed := r.changes.take(req.NamespacedName)
	if !changed && r.isTaken(app) {
		return r.settled(req, settle(nil))
	}
	r.untake(req.NamespacedName) // a pass that fails leaves nothing to compare with
	content, err := r.take(ctx, app)
	if err == nil {
		err = r.pin(ctx, app, rels, content, is, first)
	}
	if err != nil && changed {
		r.changes.add(req.NamespacedName)
	}
	// Not before: a process that is killed between content and pin would delete its content each time it starts.
	if settleErr := settle(nil); settleErr != nil {
		r.untake(req.NamespacedName)
		return r.settled(req, settleErr)
	}
	return r.outcome(ctx, req, app, content, err)
}

// take reads what an Application selects, if its user may place it. It starts the watches before it reads, so that no change is lost
// between. With follow OnRefresh there are none.
func (r *Reconciler) take(ctx context.Context, app *shipper.Application) (*content, error) {
	if err := r.permitted(ctx, app); err != nil {
		return nil, err
	}
	key, asked := client.ObjectKeyFromObject(app), answers{}
	watch := func(list []interest) {
		if app.Spec.Template.Resources.Follow != shipper.FollowOnRefresh {
			r.watches.set(ctx, key, list, asked)
		}
	}
	queries, err := r.reader.queries(app)
	if err != nil {
		watch([]interest{{place: place{resource: definitions}}})
		return nil, err
	}
	watch(append(r.reader.interests(queries, nil), r.watches.known(key)...))
	content, found, err := r.read(ctx, queries)
	if found != nil {
		watch(found)
	}
	return content, err
}

// read makes content of what queries select, and returns what is to be watched; nil if that is not known.
func (r *Reconciler) read(ctx context.Context, queries []query) (*content, []interest, error) {
	release, err := r.reader.slot(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	all, err := r.reader.read(ctx, queries)
	if all == nil {
		return nil, nil, err
	}
	found := r.reader.interests(queries, all)
	if err != nil {
		return nil, found, err
	}
	content, err := planContent(all, r.reader.policy, r.reader.scope)
	return content, found, err
}

// outcome reports what a pass has come to, and says when the next one is.
func (r *Reconciler) outcome(
	ctx context.Context, req ctrl.Request, app *shipper.Application, content *content, err error,
) (ctrl.Result, error) {
	if passing(err) {
		return r.retrier.Again(req), nil
	}
	p := problemOf(app, err)
	var reportErr error
	if p != nil {
		reportErr = r.report(ctx, app, p)
	} else if err == nil {
		r.setTaken(app)
		reportErr = r.reportTaken(ctx, app, content)
	}
	switch {
	case err == nil || reportErr != nil:
		return r.settled(req, reportErr)
	case p == nil:
		return r.settled(req, err)
	}
	switch p.action {
	case retry.Wait:
		return r.settled(req, nil)
	case retry.Recheck:
		r.retrier.Forget(req)
		return ctrl.Result{RequeueAfter: recheck}, nil
	case retry.Requeue:
		return r.retrier.Again(req), nil
	default:
		return ctrl.Result{}, fmt.Errorf("taking the resources of Application %s: %w", req, err)
	}
}

// settled is the result of a pass that ended with writes to the management cluster.
func (r *Reconciler) settled(req ctrl.Request, err error) (ctrl.Result, error) {
	if passing(err) {
		return r.retrier.Again(req), nil
	}
	return r.retrier.Persisted(req, err)
}

// passing reports whether a failure is only a concurrent write, or one that the cache does not show yet.
func passing(err error) bool { return err != nil && resourcesnapshot.Passing(err) }

// forget ends what is kept in memory for an Application.
func (r *Reconciler) forget(ctx context.Context, app types.NamespacedName) {
	r.watches.set(ctx, app, nil, nil)
	r.changes.take(app)
	r.untake(app)
}

// untake makes the next pass read an Application.
func (r *Reconciler) untake(app types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.taken, app)
}

// isTaken reports whether the last complete pass has read an Application as it is now.
func (r *Reconciler) isTaken(app *shipper.Application) bool {
	r.mu.Lock()
	was := r.taken[client.ObjectKeyFromObject(app)]
	r.mu.Unlock()
	is, err := fingerprint(app)
	return err == nil && was == is
}

func (r *Reconciler) setTaken(app *shipper.Application) {
	is, err := fingerprint(app)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken[client.ObjectKeyFromObject(app)] = is
}

// fingerprint is a hash of what a pass reads of an Application.
func fingerprint(app *shipper.Application) (string, error) {
	return sum([]any{app.UID, app.Spec.Template, app.Annotations[shipper.AppResourcesRefreshAnnotation],
		app.Annotations[shipper.AppResourcesTakenAnnotation], app.Annotations[shipper.AppSelectedByAnnotation]})
}

// isPartOf reports whether a ResourceSnapshot of that name has content with a digest.
func isPartOf(name, digest string) bool {
	first := shipper.ResourceSnapshotName(digest, 1)
	return strings.HasPrefix(name, first[:len(first)-1])
}
