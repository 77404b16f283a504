// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/drift"
	"shipper.dev/shipper/reconciler/member/resources"
	"shipper.dev/shipper/reconciler/member/traffic"
)

// InstallationTargets are written by the rollout reconciler; their finalizer and their status are written here.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=installationtargets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=installationtargets/status,verbs=patch
// Releases hold the chart's digest, and the chart itself for targets of older installations; and what is asked of hooks.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=releases,verbs=get;list;watch
// TrafficTargets decide the initial selector of a Service.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=traffictargets,verbs=get;list;watch
// A cluster whose Cluster object is gone is given up.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=clusters,verbs=get;list;watch
// Changed conditions are reported by events.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options for NewWorker.
type Options struct {
	// Client reads from caches, Live from the API server itself.
	Client, Live client.Reader
	// Fleet is the connections to application clusters.
	Fleet *fleet.Fleet
	// Renderer renders charts.
	Renderer Renderer
	// Content knows what targets with resources place. Nil: they are not placed.
	Content resources.Content
	// Clock is the time of transitions.
	Clock clock.PassiveClock
	// InitialSelector returns the initial selector of a Service. Nil: Services always select by label.
	InitialSelector traffic.InitialSelector
}

// Worker installs and removes in application clusters. It is safe for concurrent use, but for the same target in the same cluster, and for
// targets with resources of the same Application.
type Worker struct {
	client, live    client.Reader
	fleet           *fleet.Fleet
	renderer        Renderer
	clock           clock.PassiveClock
	drifts          drift.Memories[item]
	initialSelector traffic.InitialSelector
	// corrected counts what was corrected.
	corrected *prometheus.CounterVec
	// resources works on targets with resources.
	resources *resources.Worker
	// gone has the targets whose Releases the API server has said to be gone.
	gone goneTargets
}

// NewWorker makes a Worker.
func NewWorker(o Options) *Worker {
	w := &Worker{
		client: o.Client, live: o.Live, fleet: o.Fleet, renderer: o.Renderer, clock: o.Clock, initialSelector: o.InitialSelector,
		corrected: newDriftCounter(),
	}
	w.resources = resources.NewWorker(resources.Options{
		Client: o.Client, Live: o.Live, Content: o.Content, Clock: o.Clock,
		Corrected: func(namespace, app, cluster string) { w.corrected.WithLabelValues(namespace, app, cluster).Inc() },
	})
	return w
}

// Metrics are those about drift.
func (w *Worker) Metrics() prometheus.Collector { return w.corrected }

// Forget a target that is gone.
func (w *Worker) Forget(target types.NamespacedName) {
	w.drifts.Forget(target)
	w.resources.Forget(target)
	w.gone.forget(target)
}
