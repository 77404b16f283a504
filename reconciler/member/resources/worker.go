// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/member/drift"
)

// Content knows what ResourceSnapshots keep. The objects are shared and must not be changed.
type Content interface {
	Content(ctx context.Context, namespace, digest string) ([]unstructured.Unstructured, error)
}

// Cluster is what a pass needs of a connection to an application cluster. *fleet.Member is one.
type Cluster interface {
	Client() client.Client
	Granted() client.Client
	Live() client.Reader
	Session() uint64
	APIVersions() []string
	Mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error)
	Metadata(ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey) (*metav1.PartialObjectMetadata, error)
	LiveMetadata(ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey) (*metav1.PartialObjectMetadata, error)
	Health(ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey) (*metav1.PartialObjectMetadata, fleet.Health, error)
	Claim(anchor *corev1.ConfigMap) error
}

var _ Cluster = &fleet.Member{}

// Options for NewWorker.
type Options struct {
	// Client reads from caches, Live from the API server of the management cluster itself.
	Client, Live client.Reader
	// Content knows what is to be placed.
	Content Content
	// Clock is the time of writes.
	Clock clock.PassiveClock
	// Corrected is called for each object that was written again because of drift.
	Corrected func(namespace, app, cluster string)
	// Parallel is how many requests of a pass are under way at the same time. Default: 8.
	Parallel int
}

// Worker places resources in application clusters and removes them. It is safe for concurrent use, but for the same Application in the same
// cluster, of which the targets share an anchor.
type Worker struct {
	Options

	mu sync.Mutex // of the results of passes

	drifts, diffs drift.Memories[objects.Key]
	judgements    judgements
	polls         polls
	// maxCost is maxCost, but in tests.
	maxCost uint64
}

// noContent is where no process keeps ResourceSnapshots.
type noContent struct{}

// Content is Content.
func (noContent) Content(context.Context, string, string) ([]unstructured.Unstructured, error) {
	return nil, errors.New("this Shipper reads no ResourceSnapshots")
}

// NewWorker makes a Worker.
func NewWorker(o Options) *Worker {
	if o.Parallel == 0 {
		o.Parallel = 8
	}
	if o.Content == nil {
		o.Content = noContent{}
	}
	if o.Corrected == nil {
		o.Corrected = func(string, string, string) {}
	}
	return &Worker{Options: o, maxCost: maxCost}
}

// Forget a target that is gone.
func (w *Worker) Forget(target types.NamespacedName) {
	w.drifts.Forget(target)
	w.diffs.Forget(target)
	w.judgements.forget(target)
	w.polls.forget(target)
}

// Task is what one pass is about.
type Task struct {
	// Target is the InstallationTarget, with spec.resources, and Siblings are all of its Application.
	Target   *shipper.InstallationTarget
	Siblings *Siblings
	// Cluster is the connection, Name the name of the Cluster and Identity that of this management cluster.
	Cluster  Cluster
	Name     string
	Identity string
	// Policy is the driftPolicy of the Application.
	Policy shipper.DriftPolicy
	// Overrides are what the Release changes in this cluster.
	Overrides []override.Change
}

// TaskIn is a Task in a member of the fleet.
func TaskIn(m *fleet.Member, it *shipper.InstallationTarget, all *Siblings, policy shipper.DriftPolicy) Task {
	return Task{Target: it, Siblings: all, Cluster: m, Name: m.Name, Identity: m.Identity, Policy: policy}
}

// Result is what came of a pass.
type Result struct {
	// Err is what is wrong in the cluster, or what is waited for. General concerns no cluster in particular.
	Err, General error
	// Reason and Message explain Ready=True; empty most often.
	Reason, Message string
	// Events to record.
	Events []report.Event
	// Objects is how the placed objects are; nil when that is not known. Superseded is set where another target reports them.
	Objects    *shipper.InstalledObjects
	Superseded bool
	// Ended is set where the target's Release is gone: soon the target is, too.
	Ended bool
	// Drift is how they differ from what was released, Diff how objects differ that are not the Application's. Nil: they do not.
	Drift, Diff *shipper.InstalledDrift
	// Later is when to look again although nothing happens; 0 for never.
	Later time.Duration
}

// each calls do for all numbers below n, limit of them side by side.
func each(limit, n int, do func(i int)) {
	slots := make(chan struct{}, limit)
	var running sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	running.Wait()
}
