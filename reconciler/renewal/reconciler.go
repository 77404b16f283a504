// SPDX-License-Identifier: Apache-2.0

// Package renewal renews the tokens of application clusters before they end, and says of all credentials when they end.
//
// A token is renewed when a quarter of its life has passed, if its Secret has the annotation that `shipperctl clusters join`
// writes: Shipper asks the cluster by TokenRequest, with the token that it has, for another one of the same account, bound to
// the same Secret of that cluster. A user who deletes that Secret revokes all of them. A process that is killed between the request and
// the write leaves an unused token, and requests another. A Secret without the annotation is never written.
package renewal

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/credential"
	"shipper.dev/shipper/reconciler/retry"
)

// The Secret of a cluster has the cluster's name, which the rule cannot know.
// +kubebuilder:rbac:groups="",namespace=shipper-system,resources=secrets,verbs=get;list;watch;patch

// Options for SetupWithManager.
type Options struct {
	// Fleet connects to the clusters, and gets the end of credentials.
	Fleet *fleet.Fleet
	// Namespace holds the Secrets of clusters.
	Namespace string
	// Clock decides what is due.
	Clock clock.PassiveClock
}

// Reconciler converges the credentials of clusters.
type Reconciler struct {
	client    client.Client
	fleet     *fleet.Fleet
	namespace string
	clock     clock.PassiveClock
	retries   *retry.Retrier[reconcile.Request]
	// renewed is when which cluster's token was renewed last; there is one worker.
	renewed map[string]time.Time
}

// SetupWithManager makes the reconciler run with mgr. Its requests are named as Clusters are.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{
		client: mgr.GetClient(), fleet: o.Fleet, namespace: o.Namespace, clock: o.Clock,
		renewed: map[string]time.Time{},
		retries: retry.NewRetrier(retry.SlowLimiter[reconcile.Request]()),
	}
	ours := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetNamespace() == r.namespace })
	err := ctrl.NewControllerManagedBy(mgr).
		Named("renewal").
		For(&shipper.Cluster{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(ofSecret), builder.WithPredicates(ours)).
		WatchesRawSource(o.Fleet.Members()).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, RateLimiter: retry.ClusterLimiter[ctrl.Request]()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up renewal: %w", err)
	}
	return nil
}

// Reconcile renews the token of one cluster when it is due, and says when the credentials end.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: r.namespace, Name: req.Name}
	known, err := r.observe(ctx, key, secret)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !known {
		r.fleet.SetCredentials(req.Name, fleet.Credentials{})
		r.retries.Forget(req)
		delete(r.renewed, req.Name)
		return ctrl.Result{}, nil
	}
	c, now := credential.Read(secret), r.clock.Now()
	var failed error
	if due(c, r.renewed[req.Name], now) {
		var renewed bool
		if renewed, failed = r.renew(ctx, req.Name, secret, c); renewed {
			log.FromContext(ctx).Info("The token of a cluster is renewed", "cluster", req.Name)
			r.renewed[req.Name] = now
			c = credential.Read(secret)
		}
	}
	r.fleet.SetCredentials(req.Name, reported(c, key.String(), failed, now))
	if failed != nil {
		log.FromContext(ctx).Info("The token of a cluster cannot be renewed", "cluster", req.Name, "reason", retry.Brief(failed))
		return r.retries.Again(req), nil
	}
	r.retries.Forget(req)
	return ctrl.Result{RequeueAfter: again(c, r.renewed[req.Name], now)}, nil
}

// observe reads the Secret of a cluster, and reports whether there are both.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName, secret *corev1.Secret) (bool, error) {
	cluster := &shipper.Cluster{}
	err := r.client.Get(ctx, client.ObjectKey{Name: key.Name}, cluster)
	if apierrors.IsNotFound(err) || err == nil && fleet.Gone(cluster) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Cluster %s: %w", key.Name, err)
	}
	err = r.client.Get(ctx, key, secret)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return err == nil, nil
}

// renew asks the cluster for another token and writes it into the Secret. It is false, without an error, while the cluster cannot
// be worked with, and when the Secret was written since it was read: its event triggers the next pass.
func (r *Reconciler) renew(ctx context.Context, cluster string, secret *corev1.Secret, c credential.Credential) (bool, error) {
	member, err := r.fleet.Get(ctx, cluster)
	var unable *fleet.Error
	if errors.As(err, &unable) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	ctx, cancel := member.Context(ctx, fleet.WorkTimeout)
	defer cancel()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.Account.Namespace, Name: c.Account.Name}}
	request := Request(c.Account.Secret, types.UID(c.Account.SecretUID), c.Life)
	if err := member.Client().SubResource("token").Create(ctx, account, request); err != nil {
		return false, fmt.Errorf("asking the cluster for a token: %w", err)
	}
	was := secret.DeepCopy()
	secret.Data[credential.TokenKey] = []byte(request.Status.Token)
	err = r.client.Patch(ctx, secret, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(shipper.FieldOwner))
	if apierrors.IsConflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("writing the token: %w", err)
	}
	return true, nil
}

// Request is the request for a token that is bound to a Secret. API servers may give one of a shorter life, and say so.
func Request(secret string, uid types.UID, life time.Duration) *authenticationv1.TokenRequest {
	return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(life / time.Second)),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: secret, UID: uid},
	}}
}

// ofSecret is the cluster a Secret is for.
func ofSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	return named(ctx, secret.GetName())
}

// named is the request for a cluster.
func named(_ context.Context, cluster string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: cluster}}}
}
