// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/member/capacity"
	"shipper.dev/shipper/reconciler/member/inplace"
	"shipper.dev/shipper/reconciler/member/installation"
	"shipper.dev/shipper/reconciler/member/resources"
	"shipper.dev/shipper/reconciler/member/targetstatus"
	"shipper.dev/shipper/reconciler/member/traffic"
	"shipper.dev/shipper/reconciler/queue"
	"shipper.dev/shipper/reconciler/retry"
	"shipper.dev/shipper/reconciler/targets"
)

// Options for SetupWithManager.
type Options struct {
	// Fleet is the connections to application clusters.
	Fleet *fleet.Fleet
	// Renderer renders charts.
	Renderer installation.Renderer
	// Content knows what targets with resources place. Nil: they are not placed.
	Content resources.Content
	// Clock is the time of transitions.
	Clock clock.PassiveClock
	// Workers is how many passes are made in one cluster at the same time, and how many statuses of each kind are written.
	Workers int
	// Registry is where metrics go. Nil: nowhere.
	Registry prometheus.Registerer
	// Priority of an Application. Nil: none is urgent.
	Priority func(application types.NamespacedName) queue.Priority
	// PriorityOfTarget is Priority by the name of a target, for the queues of their statuses.
	PriorityOfTarget func(reconcile.Request) queue.Priority
	// SelectByRelease lets the Service of an Application select by Release while exactly one weighs anything.
	SelectByRelease bool
}

// Reconciler makes the passes of all clusters.
type Reconciler struct {
	client   client.Client
	cache    cache.Cache
	fleet    *fleet.Fleet
	clock    clock.PassiveClock
	recorder events.EventRecorder
	retries  *retry.Retrier[work]
	queues   *queues

	installation *installation.Worker
	capacity     *capacity.Worker
	inplace      *inplace.Worker
	traffic      *traffic.Worker

	installed *targetstatus.Results[installation.Outcome]
	scaled    *targetstatus.Results[capacity.Outcome]
	shifted   *targetstatus.Results[traffic.Outcome]
}

// SetupWithManager makes the reconciler run with mgr, and those of the targets' statuses.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	var selector traffic.InitialSelector
	if o.SelectByRelease {
		selector = traffic.NewInitialSelector(mgr.GetClient())
	}
	anchors := installation.NewAnchors()
	r := &Reconciler{
		client: mgr.GetClient(), cache: mgr.GetCache(), fleet: o.Fleet, clock: o.Clock,
		recorder: mgr.GetEventRecorder(fleet.UserAgent), retries: retry.NewRetrier(retry.ClusterLimiter[work]()),
		installation: installation.NewWorker(installation.Options{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Fleet: o.Fleet, Renderer: o.Renderer, Content: o.Content, Clock: o.Clock,
			InitialSelector: selector,
		}),
		capacity:  capacity.NewWorker(o.Fleet),
		inplace:   inplace.NewWorker(mgr.GetClient(), o.Fleet, anchors, o.Clock),
		traffic:   traffic.NewWorker(mgr.GetClient(), o.Fleet, anchors.ListedOf, o.SelectByRelease),
		installed: targetstatus.NewResults[installation.Outcome](),
		scaled:    targetstatus.NewResults[capacity.Outcome](),
		shifted:   targetstatus.NewResults[traffic.Outcome](),
	}
	r.queues = &queues{
		reconcile: r, clock: o.Clock, all: map[string]priorityqueue.PriorityQueue[Key]{}, options: queue.Options[Key]{
			Namespace: func(k Key) string { return k.Namespace }, Priority: priorityOf(o), Workers: o.Workers,
		},
	}
	if err := r.setupStatuses(mgr, o); err != nil {
		return err
	}
	if err := mgr.Add(r); err != nil {
		return fmt.Errorf("setting up the work in clusters: %w", err)
	}
	return nil
}

// priorityOf a key is that of its Application.
func priorityOf(o Options) func(Key) queue.Priority {
	if o.Priority == nil {
		return nil
	}
	return func(k Key) queue.Priority {
		return o.Priority(types.NamespacedName{Namespace: k.Namespace, Name: k.App})
	}
}

// setupStatuses sets up what writes the targets' statuses, and their metrics.
func (r *Reconciler) setupStatuses(mgr ctrl.Manager, o Options) error {
	lines := func() queue.New[reconcile.Request] { return queue.Objects(o.Workers, o.PriorityOfTarget) }
	shifted := traffic.NewTarget(mgr.GetClient())
	err := errors.Join(
		targetstatus.SetupWithManager(mgr, targetstatus.Options[*shipper.InstallationTarget, installation.Outcome]{
			Name: "installation", New: func() *shipper.InstallationTarget { return &shipper.InstallationTarget{} },
			Kind:    installation.NewTarget(mgr.GetClient(), r.installation),
			Results: r.installed, Clock: o.Clock, Workers: o.Workers, Queue: lines(),
		}),
		targetstatus.SetupWithManager(mgr, targetstatus.Options[*shipper.CapacityTarget, capacity.Outcome]{
			Name: "capacity", New: func() *shipper.CapacityTarget { return &shipper.CapacityTarget{} },
			Kind: capacity.NewTarget(mgr.GetClient()), Results: r.scaled, Clock: o.Clock, Workers: o.Workers, Queue: lines(),
		}),
		targetstatus.SetupWithManager(mgr, targetstatus.Options[*shipper.TrafficTarget, traffic.Outcome]{
			Name: "traffic", New: func() *shipper.TrafficTarget { return &shipper.TrafficTarget{} },
			Kind: shifted, Results: r.shifted, Clock: o.Clock, Workers: o.Workers, Queue: lines(),
		}),
	)
	if err != nil || o.Registry == nil {
		return err
	}
	for _, metric := range []prometheus.Collector{r.installation.Metrics(), shifted.Metrics()} {
		if err := o.Registry.Register(metric); err != nil {
			return fmt.Errorf("registering the metrics of clusters: %w", err)
		}
	}
	return nil
}

// NeedLeaderElection is true: only the leader works in application clusters.
func (r *Reconciler) NeedLeaderElection() bool { return true }

// Start watches, and makes passes until ctx is done.
func (r *Reconciler) Start(ctx context.Context) error {
	defer r.queues.end()
	if err := r.watch(ctx); err != nil {
		return err
	}
	r.queues.start(ctx)
	return nil
}

// Reconcile makes one pass.
func (r *Reconciler) Reconcile(ctx context.Context, key Key) (ctrl.Result, error) {
	if key.Pods {
		return r.reconcilePods(ctx, key)
	}
	return r.reconcileInstallation(ctx, key)
}

// sideBySide is how many targets of an Application are worked on at the same time in a cluster.
const sideBySide = 4

// reconcileInstallation works on the targets of an Application that are due in a cluster, side by side: each has an anchor, a timeout and
// retries of its own. Those with resources share an anchor.
func (r *Reconciler) reconcileInstallation(ctx context.Context, key Key) (ctrl.Result, error) {
	var all errgroup.Group
	all.SetLimit(sideBySide)
	for _, target := range r.queues.due.take(key, r.clock.Now()) {
		all.Go(func() error { return r.recovered(ctx, work{key, target}) })
	}
	if err := all.Wait(); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: r.queues.due.next(key, r.clock.Now())}, nil
}

// recovered does work. A panic is an error of the pass, as it is where controllers call; after an error the work stays due.
func (r *Reconciler) recovered(ctx context.Context, w work) (err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("working on %s/%s %s: panic: %v\n%s", w.Namespace, w.App, w.target, caught, debug.Stack())
		}
		if err != nil {
			r.queues.due.mark(w, r.clock.Now())
		}
	}()
	if w.target == "" {
		return r.place(ctx, w.Key)
	}
	it := &shipper.InstallationTarget{}
	err = r.client.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: w.target}, it)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading InstallationTarget %s/%s: %w", w.Namespace, w.target, err)
	case err != nil:
		r.retries.Forget(w)
		return r.installation.ReleaseAnchor(ctx, w.Cluster, types.NamespacedName{Namespace: w.Namespace, Name: w.target})
	case keyOf(it, w.Cluster) != w:
		r.retries.Forget(w)
		return nil
	}
	return r.install(ctx, it, w.Key, nil)
}

// place works on the targets with resources of an Application in a cluster, one after the other.
func (r *Reconciler) place(ctx context.Context, key Key) error {
	all, err := r.installation.Siblings(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.App}, key.Cluster)
	if err != nil {
		return err
	}
	for _, it := range all.Targets {
		if err := r.install(ctx, it, key, all); err != nil {
			return err
		}
	}
	return nil
}

// install installs or removes what one InstallationTarget says in a cluster, if it is or was there. all are those of its Application if it
// has resources.
func (r *Reconciler) install(ctx context.Context, it *shipper.InstallationTarget, key Key, all *resources.Siblings) error {
	w := work{key, it.Name}
	if !slices.Contains(installation.Clusters(it), key.Cluster) {
		r.retries.Forget(w)
		return r.installation.ReleaseAnchor(ctx, w.Cluster, client.ObjectKeyFromObject(it))
	}
	outcome := r.installation.Work(ctx, it, w.Cluster, all)
	if outcome.Missing() {
		r.retries.Forget(w)
		return nil
	}
	if !r.retries.Overtaken(w, outcome.Errors()...) {
		r.installed.Put(it, w.Cluster, outcome)
	}
	report.Emit(r.recorder, it, outcome.Events()) // of what was done; the next pass does not do it again
	result, err := r.retries.ResultInCluster(ctx, w, outcome.Errors()...)
	now := r.clock.Now()
	if again := report.Sooner(result.RequeueAfter, outcome.Again(now)); again > 0 {
		r.queues.due.mark(keyOf(it, w.Cluster), now.Add(again))
	}
	return err
}

// reconcilePods scales and shifts traffic for one Application in one cluster: Pods are added first and removed last, so that what is asked
// of both at once, as by targets of a restored management cluster, takes nothing away that serves.
func (r *Reconciler) reconcilePods(ctx context.Context, key Key) (ctrl.Result, error) {
	w := work{Key: key}
	app := types.NamespacedName{Namespace: key.Namespace, Name: key.App}
	passes, here, err := r.observePods(ctx, w, app)
	broken := []error{err} // of the management cluster; those of the cluster are in a status
	for _, pass := range passes {
		pass.Raise(ctx)
	}
	outcomes, serving, err := r.traffic.Work(ctx, key.Cluster, app, here)
	broken = append(broken, err)
	var met []error
	for _, pass := range passes {
		pass.Lower(ctx, serving)
		outcome := pass.Outcome()
		if !r.retries.Overtaken(w, outcome.Errors()...) {
			r.scaled.Put(pass.Target, key.Cluster, outcome)
		}
		met = append(met, outcome.Errors()...)
	}
	for tt, outcome := range outcomes {
		if !r.retries.Overtaken(w, outcome.Errors()...) {
			r.shifted.Put(tt, key.Cluster, outcome)
		}
		met = append(met, outcome.Errors()...)
	}
	if err := errors.Join(broken...); err != nil {
		return ctrl.Result{}, err
	}
	return r.retries.ResultInCluster(ctx, w, met...)
}

// observePods reads what one Application has in one cluster, and changes its workloads in place. The error is one of the management
// cluster: then found.Unknown is true.
func (r *Reconciler) observePods(
	ctx context.Context, w work, app types.NamespacedName,
) (passes []*capacity.Pass, found traffic.ClusterState, err error) {
	found = traffic.ClusterState{InPlace: sets.New[string](), Lacking: sets.New[string](), Unknown: true}
	var list shipper.CapacityTargetList
	if err := targets.OfApplication(ctx, r.client, &list, w.Namespace, w.App); err != nil {
		return nil, found, err
	}
	var broken []error
	var here []*shipper.CapacityTarget
	for i := range list.Items {
		ct := &list.Items[i]
		ended, err := targets.Ended(ctx, r.client, ct)
		broken = append(broken, err)
		if err == nil && !ended && inCluster(ct, w.Cluster) >= 0 {
			here = append(here, ct)
		}
	}
	stakes, err := r.inplace.Work(ctx, w.Cluster, app, here)
	if err != nil {
		return nil, found, errors.Join(append(broken, err)...)
	}
	for release, stake := range stakes {
		if slices.ContainsFunc(stake.Shares, func(s inplace.Share) bool { return s.Have > 0 }) {
			found.InPlace.Insert(release)
		}
	}
	for _, ct := range here {
		pass := r.capacity.Observe(ctx, ct, ct.Spec.Clusters[inCluster(ct, w.Cluster)], stakes[ct.Name])
		if passes = append(passes, pass); pass.Lacks() {
			found.Lacking.Insert(pass.Release())
		}
		found.Lowering = found.Lowering || pass.Lowers()
	}
	err = errors.Join(broken...)
	found.Unknown = err != nil
	return passes, found, err
}

// inCluster is the index of a cluster in a target's spec; -1 if it is not there.
func inCluster(ct *shipper.CapacityTarget, cluster string) int {
	return slices.IndexFunc(ct.Spec.Clusters, func(c shipper.ClusterCapacityTarget) bool { return c.Name == cluster })
}
