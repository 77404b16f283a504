// SPDX-License-Identifier: Apache-2.0

// Package notify sends messages about Releases to the servers that Notifications name.
//
// The leader derives events from what changes in Releases, puts each into the outbox of every Notification that asks for it, and
// delivers them in passes of the Notification, those of one Release in their order. An outbox is bounded; a rollout does not wait for
// it. Delivery is at least once: status.deliveredUpToTime has the time up to which events were delivered, never later than an event
// that is queued, and a leader that begins derives those from then on again from the Releases. Their IDs are the same, so that
// receivers can drop what they have.
package notify

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/outward/body"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/queue"
	"shipper.dev/shipper/reconciler/retry"
)

// Users write Notifications; this one writes their status. Secrets of users are read with the rights that the owner of a namespace
// binds.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=notifications,verbs=get;list;watch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=notifications/status,verbs=patch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=applications;releases,verbs=get;list;watch
// +kubebuilder:rbac:groups="",namespace=shipper-system,resources=configmaps,resourceNames=shipper-identity,verbs=get

const (
	// burst bounds the messages of one pass, as does requestTimeout, so that other Notifications have their turn.
	burst = 16
	// quietAfter is how long after a delivery deliveredUpToTime becomes the present, and overlap how much older than it an event may be
	// that a new leader derives again: a change is seen within that time.
	quietAfter, overlap = 30 * time.Second, 15 * time.Second
)

// Options for SetupWithManager.
type Options struct {
	// URLs are those that messages may be sent to. Nil: none.
	URLs *outward.Policy
	// Namespace is Shipper's, whose Notifications are for every namespace.
	Namespace string
	// Clock is the time.
	Clock clock.PassiveClock
	// Workers is how many Notifications are worked on at the same time.
	Workers int
	// Registry is where metrics go. Nil: nowhere.
	Registry prometheus.Registerer
	// Queue makes the queue of what waits to be worked on. Nil: first come, first served.
	Queue queue.New[ctrl.Request]
}

// Reconciler delivers the events of Notifications.
type Reconciler struct {
	client client.Client
	// secrets reads Secrets without a cache.
	secrets   client.Reader
	urls      *outward.Policy
	namespace string
	clock     clock.PassiveClock
	timeout   time.Duration
	bodies    *body.Bodies
	results   *prometheus.CounterVec
	outboxes  outboxes
}

// SetupWithManager makes the reconciler run with mgr.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	r := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), o)
	if o.Registry != nil {
		if err := o.Registry.Register(r.results); err != nil {
			return fmt.Errorf("registering the metric of notifications: %w", err)
		}
	}
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}) // of a test
	err := ctrl.NewControllerManagedBy(mgr).
		Named("notify").
		For(&shipper.Notification{}, builder.WithPredicates(changed)).
		Watches(&shipper.Release{}, r.changes()).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: max(o.Workers, 1), RateLimiter: retry.ClusterLimiter[ctrl.Request](), NewQueue: o.Queue,
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up notify: %w", err)
	}
	return nil
}

func newReconciler(cached client.Client, live client.Reader, o Options) *Reconciler {
	return &Reconciler{
		client: cached, secrets: live, urls: o.URLs, namespace: o.Namespace, clock: o.Clock, timeout: requestTimeout, bodies: body.New(),
		outboxes: outboxes{namespace: o.Namespace, all: map[types.NamespacedName]*outbox{}},
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shipper_notifications_total",
			Help: "Number of notifications. Label result: delivered; failed, no attempt within an hour was accepted or the message cannot be " +
				"sent; dropped, too many of the same Notification were waiting. Absent until there is one.",
		}, []string{"result"}),
	}
}

// Reconcile delivers what is due of one Notification, and writes its status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	n := &shipper.Notification{}
	err := r.client.Get(ctx, req.NamespacedName, n)
	if apierrors.IsNotFound(err) {
		r.outboxes.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading Notification %s: %w", req, err)
	}
	b := r.outboxes.of(n)
	again, err := r.deliver(ctx, n, b)
	if err != nil {
		return ctrl.Result{}, err
	}
	tested, err := r.test(ctx, n, b)
	if err != nil {
		return ctrl.Result{}, err
	}
	was := n.DeepCopy()
	n.Status = status(n, b, r.clock.Now())
	n.Status.Test = tested
	if _, err := report.PatchStatus(ctx, r.client, n, was); err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the status of Notification %s: %w", req, err)
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// deliver sends what is due, and returns when to look again; 0 when only an event will change something.
func (r *Reconciler) deliver(ctx context.Context, n *shipper.Notification, b *outbox) (time.Duration, error) {
	now := r.clock.Now()
	r.giveUp(b, now)
	check := b.checked != n.Generation || b.checkIsDue(now)
	if q := b.first(); !check && (q == nil || b.retryAt.After(now)) {
		return b.wait(now), nil
	}
	source, err := r.source(ctx)
	if err != nil {
		return 0, err
	}
	to, f := r.receiver(ctx, n)
	if f == nil {
		defer to.close()
	}
	b.check(n, f, now)
	for range burst {
		q := b.first()
		if q == nil || r.clock.Since(now) > requestTimeout {
			break
		}
		failed := f
		if failed == nil {
			failed = r.send(ctx, n, to, source, q.Event)
		}
		if !r.recordAttempt(b, failed, r.clock.Now()) {
			break
		}
	}
	return b.wait(r.clock.Now()), nil
}

// send sends one event.
func (r *Reconciler) send(ctx context.Context, n *shipper.Notification, to *receiver, source string, e Event) *failure {
	m, f := r.message(ctx, n, source, e)
	if f != nil {
		return f
	}
	return to.post(ctx, m, r.timeout, r.clock.Now())
}

// recordAttempt records the result of an attempt, and reports whether the next event may be tried.
func (r *Reconciler) recordAttempt(b *outbox, f *failure, now time.Time) bool {
	if f == nil {
		r.results.WithLabelValues("delivered").Inc()
		b.failures, b.lastDelivery = 0, now
		b.accepted()
		b.done(now)
		return true
	}
	b.failures++
	b.setNotDelivering(f)
	if f.final {
		r.results.WithLabelValues("failed").Inc()
		b.done(now)
		return true
	}
	b.retry(now, f.after)
	return false
}

// giveUp removes events that were tried for too long.
func (r *Reconciler) giveUp(b *outbox, now time.Time) {
	for q := b.first(); q != nil && now.Sub(q.since) >= giveUpAfter; q = b.first() {
		r.results.WithLabelValues("failed").Inc()
		b.done(now)
	}
}

// source is the id of the management cluster.
func (r *Reconciler) source(ctx context.Context) (string, error) {
	var identity corev1.ConfigMap
	key := types.NamespacedName{Namespace: r.namespace, Name: shipper.IdentityName}
	if err := r.client.Get(ctx, key, &identity); err != nil {
		return "", fmt.Errorf("reading the identity of the management cluster: %w", err)
	}
	id := strings.TrimSpace(identity.Data[shipper.IdentityKey])
	if id == "" {
		return "", fmt.Errorf("ConfigMap %s has no %s", key, shipper.IdentityKey)
	}
	return id, nil
}
