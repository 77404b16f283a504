// SPDX-License-Identifier: Apache-2.0

// Package cluster gives the fleet the clusters and their credentials, and writes into each Cluster's status
// whether it can be reached.
package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/retry"
)

// Clusters are written by administrators; this one writes their status, and the finalizer of those with onLeave: Remove.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=clusters,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=clusters/status,verbs=patch
// A Cluster that leaves waits for these.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=releases;installationtargets,verbs=get;list;watch
// The credentials of clusters are in Shipper's own namespace, and in no other.
// +kubebuilder:rbac:groups="",namespace=shipper-system,resources=secrets,verbs=get;list;watch
// Clusters that become ready or are lost are reported by events.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options for SetupWithManager.
type Options struct {
	// Fleet gets the clusters.
	Fleet *fleet.Fleet
	// Namespace holds the Secrets of clusters.
	Namespace string
	// Clock is the time of transitions.
	Clock clock.PassiveClock
	// Workers is how many Clusters are worked on at the same time.
	Workers int
}

// Reconciler converges Clusters.
type Reconciler struct {
	client    client.Client
	fleet     *fleet.Fleet
	namespace string
	clock     clock.PassiveClock
	recorder  events.EventRecorder
	retries   *retry.Retrier[ctrl.Request]
	throttle  *report.Throttle
	leaving   leaving
}

// SetupWithManager makes the reconciler run with mgr.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{
		client: mgr.GetClient(), fleet: o.Fleet, namespace: o.Namespace, clock: o.Clock,
		recorder: mgr.GetEventRecorder(fleet.UserAgent), retries: retry.NewRetrier(retry.ClusterLimiter[ctrl.Request]()),
		throttle: report.NewThrottle(),
	}
	// No predicate on the own kind: a pass that read the status as it was before its last write is put right by that
	// write's event.
	err := ctrl.NewControllerManagedBy(mgr).
		Named("cluster").
		For(&shipper.Cluster{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.ofSecret)).
		WatchesRawSource(o.Fleet.KnownMembers()).
		Watches(&shipper.Release{}, r.leaving.handler(placedOn)).
		Watches(&shipper.InstallationTarget{}, r.leaving.handler(placedOn)).
		WatchesRawSource(o.Fleet.Warnings()).
		WatchesRawSource(o.Fleet.PropertyChanges()).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers, RateLimiter: retry.ClusterLimiter[ctrl.Request]()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up cluster: %w", err)
	}
	return nil
}

// Reconcile makes the fleet know one Cluster, and the Cluster's status what the fleet knows.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &shipper.Cluster{}
	err := r.client.Get(ctx, req.NamespacedName, cluster)
	if apierrors.IsNotFound(err) || err == nil && fleet.Gone(cluster) {
		r.leaving.remove(req.Name)
		r.fleet.Remove(req.Name) // once more when it is gone at last: targets wait for that too
		return r.retries.Persisted(req, nil)
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading Cluster %s: %w", req.Name, err)
	}
	left, err := r.leave(ctx, cluster)
	if err != nil || fleet.Gone(cluster) { // the event of the finalizer's removal makes the next pass
		return r.retries.Persisted(req, err)
	}
	access, err := r.access(ctx, cluster)
	var known *fleet.Error
	if err != nil && !errors.As(err, &known) {
		return ctrl.Result{}, err
	}
	r.fleet.Set(cluster.Name, access, err)
	state, _ := r.fleet.State(cluster.Name)

	was, now := cluster.DeepCopy(), r.clock.Now()
	cluster.Status = status(was, state, r.fleet.Properties(cluster.Name), left, now)
	setAPIVersions(&cluster.Status, r.fleet.APIVersions(cluster.Name))
	if wait := r.throttle.DelayFor(turned(was.Status, cluster.Status), was, cluster, now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	changed, err := report.PatchStatus(ctx, r.client, cluster, was)
	if err != nil {
		return r.retries.Persisted(req, fmt.Errorf("writing the status of Cluster %s: %w", req.Name, err))
	}
	if changed {
		report.Emit(r.recorder, cluster, changes(was, cluster))
	}
	return r.retries.Persisted(req, nil)
}

// access reads how to reach a cluster. The error is a *fleet.Error when that is not known.
func (r *Reconciler) access(ctx context.Context, cluster *shipper.Cluster) (*fleet.Access, error) {
	key := types.NamespacedName{Namespace: r.namespace, Name: cluster.Name}
	secret := &corev1.Secret{}
	err := r.client.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		secret, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return fleet.NewAccess(cluster, secret, key.String())
}

// ofSecret is the Cluster a Secret is for.
func (r *Reconciler) ofSecret(_ context.Context, secret client.Object) []reconcile.Request {
	if secret.GetNamespace() != r.namespace {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: secret.GetName()}}}
}
