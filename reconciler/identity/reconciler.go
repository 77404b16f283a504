// SPDX-License-Identifier: Apache-2.0

// Package identity makes sure that the management cluster has an identity, and gives it to the fleet. The identity
// distinguishes management clusters that share an application cluster: each writes its own into its anchors there. It is in
// the ConfigMap `shipper-identity`, made with a random id when there is none. A restore brings it back, and an
// administrator may write another: that of the management cluster which this one replaces.
package identity

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/retry"
)

// The identity is one ConfigMap in Shipper's own namespace. It is made, and never written again.
// +kubebuilder:rbac:groups="",namespace=shipper-system,resources=configmaps,resourceNames=shipper-identity,verbs=get;list;watch
// +kubebuilder:rbac:groups="",namespace=shipper-system,resources=configmaps,verbs=create

// Options for SetupWithManager.
type Options struct {
	// Fleet gets the identity.
	Fleet *fleet.Fleet
	// Namespace is Shipper's.
	Namespace string
}

// Reconciler converges the identity.
type Reconciler struct {
	client client.Client
	fleet  *fleet.Fleet
	key    types.NamespacedName
	// last is the id that was last read: one that is deleted while this runs comes back as it was.
	last string
}

// SetupWithManager makes the reconciler run with mgr.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{
		client: mgr.GetClient(), fleet: o.Fleet,
		key: types.NamespacedName{Namespace: o.Namespace, Name: shipper.IdentityName},
	}
	is := predicate.NewPredicateFuncs(func(o client.Object) bool { return client.ObjectKeyFromObject(o) == r.key })
	err := ctrl.NewControllerManagedBy(mgr).
		Named("identity").
		For(&corev1.ConfigMap{}, builder.WithPredicates(is)).
		WatchesRawSource(source.Func(r.begin)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, RateLimiter: retry.ClusterLimiter[ctrl.Request]()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up identity: %w", err)
	}
	return nil
}

// begin requests the first pass: without a ConfigMap there is no event.
func (r *Reconciler) begin(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	q.Add(reconcile.Request{NamespacedName: r.key})
	return nil
}

// Reconcile gives the fleet the identity of this management cluster, or the reason why there is none.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	cm := &corev1.ConfigMap{}
	err := r.client.Get(ctx, r.key, cm)
	if apierrors.IsNotFound(err) {
		cm, err = r.make(ctx)
	}
	if apierrors.IsAlreadyExists(err) { // its event is on the way
		return ctrl.Result{}, nil
	}
	if err != nil {
		err = fmt.Errorf("reading or making ConfigMap %s: %w", r.key, err)
		r.fleet.Identify("", err)
		return ctrl.Result{}, err
	}
	id := strings.TrimSpace(cm.Data[shipper.IdentityKey])
	if !fleet.ValidIdentity(id) {
		r.fleet.Identify("", fmt.Errorf("data.%s of ConfigMap %s is no id: it is %q and must be a DNS subdomain; "+
			"write the id of this management cluster there, which its anchors say", shipper.IdentityKey, r.key, id))
		return ctrl.Result{}, nil
	}
	r.last = id
	r.fleet.Identify(id, nil)
	return ctrl.Result{}, nil
}

// make makes the ConfigMap.
func (r *Reconciler) make(ctx context.Context) (*corev1.ConfigMap, error) {
	id := r.last
	if id == "" {
		id = string(uuid.NewUUID())
	}
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.key.Namespace, Name: r.key.Name},
		Data:       map[string]string{shipper.IdentityKey: id},
	}
	return cm, r.client.Create(ctx, cm, client.FieldOwner(shipper.FieldOwner))
}
