// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/reconciler/check/measurement"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/history"
	"shipper.dev/shipper/reconciler/queue"
	"shipper.dev/shipper/reconciler/retry"
)

// The rollout reconciler writes the spec of CheckTargets, this one their status. Secrets of users are read with the rights that the owner
// of a namespace binds.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=checktargets,verbs=get;list;watch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=checktargets/status,verbs=patch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=releases;installationtargets;clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups="",namespace=shipper-system,resources=secrets,verbs=get;list;watch

const (
	// workers is how many measurements are made at the same time, and perNamespace how many of one namespace.
	workers, perNamespace = 64, 8
	// maxClients bounds the clients that are kept for servers, with their connections.
	maxClients = 256
)

// Options for SetupWithManager.
type Options struct {
	// Fleet has the application clusters.
	Fleet *fleet.Fleet
	// Histories finds the newest Release of an Application.
	Histories *history.Reader
	// URLs are those that Checks may name. Nil: none.
	URLs *outward.Policy
	// Transport makes the requests of Checks, without credentials. Nil: one that connects to what URLs allow alone.
	Transport http.RoundTripper
	// SharedNamespace is the one with the Checks that all namespaces share.
	SharedNamespace string
	// Namespace is Shipper's, with the Secrets for the metrics of clusters.
	Namespace string
	// Clock is the time of measurements.
	Clock clock.PassiveClock
	// Registry is where metrics go. Nil: nowhere.
	Registry prometheus.Registerer
}

// Key is one check of a CheckTarget in one cluster, or over the fleet if Cluster is empty.
type Key struct {
	Namespace, Name string
	Check, Cluster  string
}

func (k Key) target() types.NamespacedName {
	return types.NamespacedName{Namespace: k.Namespace, Name: k.Name}
}

// Reconciler makes checks.
type Reconciler struct {
	Options
	client client.Client
	// secrets reads Secrets of users without a cache.
	secrets client.Reader
	retrier *retry.Retrier[Key]
	results *results
	// measurer measures, by clients that are kept.
	measurer *measurement.Measurer
	clients  *lru.Cache
	metrics  *metrics
}

// SetupWithManager makes the reconciler run with mgr.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{
		Options: o, client: mgr.GetClient(), secrets: mgr.GetAPIReader(), retrier: retry.NewRetrier(retry.ClusterLimiter[Key]()),
		results: newResults(), measurer: measurement.New(), clients: newClients(), metrics: newMetrics(),
	}
	if o.Registry != nil {
		if err := r.metrics.register(o.Registry); err != nil {
			return fmt.Errorf("registering the metrics of checks: %w", err)
		}
	}
	c, err := controller.NewTyped("check", mgr, controller.TypedOptions[Key]{
		Reconciler: r, MaxConcurrentReconciles: workers, RateLimiter: retry.ClusterLimiter[Key](),
		NewQueue: queue.Of(queue.Options[Key]{
			Namespace: func(k Key) string { return k.Namespace }, Workers: workers, PerNamespace: perNamespace,
		}),
	})
	if err != nil {
		return fmt.Errorf("setting up check: %w", err)
	}
	return r.watch(mgr, c)
}

// one is what a pass is about.
type one struct {
	key    Key
	target *shipper.CheckTarget
	// run is the check, and state what came of all checks of the target so far.
	run   *shipper.CheckRun
	state *state
	// over is true when the run is not the current one: nothing is measured any more.
	over bool
}

// Reconcile makes one check if it is due, and writes what came of it.
func (r *Reconciler) Reconcile(ctx context.Context, key Key) (ctrl.Result, error) {
	c, err := r.observe(ctx, key)
	if err != nil || c == nil {
		return r.retrier.Persisted(key, err)
	}
	wait, err := r.step(ctx, c)
	if err != nil {
		return r.retrier.Persisted(key, err)
	}
	held, err := r.write(ctx, c)
	if err != nil {
		return r.retrier.Persisted(key, err)
	}
	r.retrier.Forget(key)
	return ctrl.Result{RequeueAfter: report.Sooner(wait, held)}, nil
}

// observe returns nil if there is nothing to do: the run is over, or its Release is not the newest, and its status is right.
func (r *Reconciler) observe(ctx context.Context, key Key) (*one, error) {
	c := &one{key: key, target: &shipper.CheckTarget{}}
	err := r.client.Get(ctx, key.target(), c.target)
	if apierrors.IsNotFound(err) {
		r.results.forget(key.target())
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading CheckTarget %s: %w", key.target(), err)
	}
	newest, err := r.newest(ctx, c.target)
	if err != nil {
		return nil, err
	}
	c.over = newest == nil || newest.Name != check.ReleaseOf(c.target) || !check.Current(c.target, newest)
	if c.over && !r.results.unsettled(c.target) {
		return nil, nil
	}
	for i := range c.target.Spec.Checks {
		if c.target.Spec.Checks[i].Name == key.Check {
			c.run = &c.target.Spec.Checks[i]
		}
	}
	if c.run == nil {
		return nil, nil
	}
	c.state = r.results.of(c.target)
	if c.state.inherits() {
		for _, cluster := range c.target.Spec.Clusters {
			if why := r.lost(ctx, cluster); why != "" {
				c.state.lose(cluster, why)
			}
		}
	}
	return c, nil
}

// newest is the newest Release of a target's Application that is not being deleted; nil when there is none.
func (r *Reconciler) newest(ctx context.Context, target *shipper.CheckTarget) (*shipper.Release, error) {
	rels, err := r.Histories.Releases(ctx, client.ObjectKey{Namespace: target.Namespace, Name: target.Labels[shipper.AppLabel]})
	if err != nil {
		return nil, fmt.Errorf("finding the newest Release of CheckTarget %s/%s: %w", target.Namespace, target.Name, err)
	}
	return stamp.NewestOf(rels), nil
}

// step measures if that is due, and returns how long until the next measurement; 0 when there is none.
func (r *Reconciler) step(ctx context.Context, c *one) (time.Duration, error) {
	for _, cluster := range clustersOf(c) {
		if c.state.misses(cluster) && r.lost(ctx, cluster) == "" {
			c.state.regain(cluster)
		}
	}
	if c.over {
		return 0, nil
	}
	is := c.state.get(c.key)
	due, more := check.Next(&c.target.Spec, c.run, is)
	if !more {
		return 0, nil
	}
	if wait := due.Sub(r.Clock.Now()); wait > 0 {
		return wait, nil
	}
	if check.Once(&c.run.Check) {
		return r.once(ctx, c)
	}
	for _, cluster := range clustersOf(c) {
		if lost := r.lost(ctx, cluster); lost != "" {
			c.state.lose(cluster, lost)
			return check.Interval(&c.run.Check), nil
		}
		c.state.regain(cluster)
	}
	r.metrics.lag.Observe(max(0, r.Clock.Since(due).Seconds()))
	m, err := r.measure(ctx, c)
	if err != nil {
		return 0, err
	}
	return r.add(c, m), nil
}

// add keeps a measurement, and returns how long until the next.
func (r *Reconciler) add(c *one, m check.Measurement) time.Duration {
	r.metrics.measurements.WithLabelValues(string(m.Verdict)).Inc()
	next, more := check.Next(&c.target.Spec, c.run, c.state.add(c.key, c.run, m))
	if !more {
		return 0
	}
	return max(time.Millisecond, next.Sub(r.Clock.Now()))
}

// clustersOf are the clusters in which a check is measured at the same time: all of them for one over the fleet.
func clustersOf(c *one) []string {
	if c.key.Cluster == "" {
		return c.target.Spec.Clusters
	}
	return []string{c.key.Cluster}
}

// lost says why a cluster cannot be worked with; empty when it can.
func (r *Reconciler) lost(ctx context.Context, cluster string) string {
	if _, err := r.Fleet.Get(ctx, cluster); err != nil {
		return retry.Brief(err)
	}
	return ""
}
