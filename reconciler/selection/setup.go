// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/queue"
	"shipper.dev/shipper/reconciler/resourcesnapshot"
	"shipper.dev/shipper/reconciler/retry"
	"shipper.dev/shipper/reconciler/rollout/history"
	"shipper.dev/shipper/reconciler/rollout/predicates"
)

// Templates are pinned; a condition is written. Selected objects are read with the ClusterRole shipper-selector, which administrators bind,
// and Secrets are kept with shipper-values-keeper, which the namespace's owner binds; nothing of that is granted here.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=applications,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=applications/status,verbs=patch
// Releases become owners of the content that they have.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=releases,verbs=get;list;watch
// Content is stored, gets owners, and is deleted when it has none.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=resourcesnapshots,verbs=get;list;watch;create;patch;delete
// The end of a block makes the next try.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=rolloutblocks;clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// name of the reconciler, in logs and metrics.
const name = "selection"

// Options for SetupWithManager.
type Options struct {
	// Snapshots store the content.
	Snapshots *resourcesnapshot.Snapshots
	// Histories reads the Releases of an Application.
	Histories *history.Reader
	// Policy says what may be placed. The webhook has the same.
	Policy objects.Policy
	// GlobalBlocksNamespace is the one whose RolloutBlocks bear on every namespace.
	GlobalBlocksNamespace string
	// Clock is the time.
	Clock clock.PassiveClock
	// Workers is how many Applications are worked on at the same time.
	Workers int
	// Registry is where metrics go. Nil: nowhere.
	Registry prometheus.Registerer
	// Queue makes the queue of requests. Nil: first come, first served.
	Queue queue.New[ctrl.Request]
}

// SetupWithManager makes the reconciler run with mgr.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	lag, err := newLag(o.Registry)
	if err != nil {
		return err
	}
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making a client for discovery: %w", err)
	}
	watched, err := metadata.NewForConfigAndClient(metadata.ConfigFor(mgr.GetConfig()), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making a client for metadata: %w", err)
	}
	// The manager's client would start a watch of what it creates, and reviews cannot be watched.
	rights, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return fmt.Errorf("making a client for reviews: %w", err)
	}
	changed := newChanges(o.Clock)
	r := &Reconciler{
		client: mgr.GetClient(), snapshots: o.Snapshots, releases: o.Histories, global: o.GlobalBlocksNamespace, clock: o.Clock, lag: lag,
		reader:  newReader(mgr.GetAPIReader(), mgr.GetRESTMapper(), kinds, o.Policy),
		changes: changed, watches: newWatches(watched, rights, changed),
		recorder: mgr.GetEventRecorder(fleet.UserAgent), retrier: retry.NewRetrier(retry.Limiter[ctrl.Request]()),
		taken: map[types.NamespacedName]string{},
	}
	snapshot := &metav1.PartialObjectMetadata{}
	snapshot.SetGroupVersionKind(resourcesnapshot.Kind())
	err = ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&shipper.Application{}, builder.WithPredicates(concernsResources())).
		Watches(&shipper.Release{}, predicates.EnqueueForApplication(), builder.WithPredicates(hasResources())).
		Watches(&shipper.RolloutBlock{}, predicates.EnqueueForBlock(r.client, r.global), predicates.BlockActiveChanged()).
		WatchesMetadata(snapshot, handler.EnqueueRequestsFromMapFunc(r.lost), builder.WithPredicates(goes())).
		WatchesRawSource(r.watches).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers, RateLimiter: retry.Limiter[ctrl.Request](), NewQueue: o.Queue}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", name, err)
	}
	return nil
}

// concernsResources passes changes of what users request of Applications that have resources, or had them, and their first status.
func concernsResources() predicate.Predicate {
	has := func(o client.Object) bool {
		app, ok := o.(*shipper.Application)
		return ok && (app.Spec.Template.Resources != nil ||
			shipper.FindCondition(app.Status.Conditions, shipper.ApplicationResourcesSelected) != nil)
	}
	going := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	}}
	begins := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok := e.ObjectOld.(*shipper.Application)
		is, ok2 := e.ObjectNew.(*shipper.Application)
		return ok && ok2 && len(was.Status.Conditions) == 0 && len(is.Status.Conditions) > 0
	}}
	return predicate.And(
		predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, going, begins),
		predicate.Funcs{
			CreateFunc: func(e event.CreateEvent) bool { return has(e.Object) },
			UpdateFunc: func(e event.UpdateEvent) bool { return has(e.ObjectOld) || has(e.ObjectNew) },
		},
	)
}

// hasResources passes Releases with resources that appear, go or are gone.
func hasResources() predicate.Predicate {
	has := func(o client.Object) bool {
		rel, ok := o.(*shipper.Release)
		return ok && rel.Spec.Environment.Resources != nil
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return has(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return has(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return has(e.ObjectNew) && (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
		},
	}
}

// goes passes the deletion of stored content.
func goes() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
}

// lost makes requests for the Applications that are pinned to stored content that was deleted.
func (r *Reconciler) lost(ctx context.Context, o client.Object) []reconcile.Request {
	var apps shipper.ApplicationList
	if err := r.client.List(ctx, &apps, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has all Applications
	}
	var out []reconcile.Request
	for i := range apps.Items {
		app := &apps.Items[i]
		digest := app.Spec.Template.Pins.Digest()
		if digest == "" || !isPartOf(o.GetName(), digest) {
			continue
		}
		key := client.ObjectKeyFromObject(app)
		r.changes.add(key)
		out = append(out, reconcile.Request{NamespacedName: key})
	}
	return out
}
