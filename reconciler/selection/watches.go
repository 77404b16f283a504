// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"shipper.dev/shipper/apis/rules/rights"
	"shipper.dev/shipper/reconciler/access"
)

const (
	// syncTimeout bounds how long a pass blocks on new watches. A watch that is later makes another pass.
	syncTimeout = 2 * time.Second
	// forbiddenDelay is the time from a refused watch to the passes that replace it.
	forbiddenDelay = 10 * time.Second
)

// watches are the metadata watches of what Applications select. They are a source of requests, and stop with the controller. They are safe
// for concurrent use.
type watches struct {
	client metadata.Interface
	// rights takes reviews of Shipper's own.
	rights  client.Writer
	changes *changes

	mu    sync.Mutex
	ctx   context.Context
	queue workqueue.TypedRateLimitingInterface[ctrl.Request]
	// everywhere has for each watched resource whether Shipper may list it in all namespaces.
	everywhere map[schema.GroupVersionResource]bool
	interests  interests
	running    map[collection]*watch
}

// answers have what the API server has said in one pass: whether Shipper may list a collection.
type answers map[collection]bool

// watch is one of the watches.
type watch struct {
	stop   context.CancelFunc
	synced <-chan struct{}
}

func newWatches(client metadata.Interface, rights client.Writer, changes *changes) *watches {
	return &watches{
		client: client, rights: rights, changes: changes, everywhere: map[schema.GroupVersionResource]bool{}, running: map[collection]*watch{},
	}
}

// Start implements source.Source: what changes goes to queue until ctx ends.
func (w *watches) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx, w.queue = ctx, queue
	return nil
}

// set replaces what is watched for an Application; nil ends it. It returns when new watches have the present state, or after some time:
// what changes after set returns makes a request. It adds to asked, which may be nil if list is.
func (w *watches) set(ctx context.Context, app types.NamespacedName, list []interest, asked answers) {
	needed := w.start(ctx, app, list, asked)
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	for _, running := range needed {
		select {
		case <-running.synced:
		case <-ctx.Done():
			return
		}
	}
}

// start starts the watches that an Application needs, returns them, and stops those that no Application needs any more.
func (w *watches) start(ctx context.Context, app types.NamespacedName, list []interest, asked answers) []*watch {
	list = distinct(list)
	w.mu.Lock()
	before := w.interests.byApp[app]
	w.interests.set(app, list) // first, so that no other Application's pass stops the watches of list
	w.mu.Unlock()
	var needed []*watch
	seen := map[collection]bool{}
	for _, one := range list {
		if seen[one.collection] {
			continue
		}
		seen[one.collection] = true
		if running := w.ensure(ctx, one.collection, asked); running != nil {
			needed = append(needed, running)
		}
	}
	w.stopUnused(before)
	return needed
}

// known are the collections that an Application is interested in.
func (w *watches) known(app types.NamespacedName) []interest {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.interests.byApp[app])
}

// ensure returns the watch of a collection, and starts it if there is none. It is nil where Shipper may not list it. If the API server
// does not say so, a watch is tried, and the next pass asks again.
func (w *watches) ensure(ctx context.Context, p collection, asked answers) *watch {
	everywhere, err := w.mayListEverywhere(ctx, p, asked)
	if everywhere {
		p.namespace = metav1.NamespaceAll
	}
	w.mu.Lock()
	running := w.running[p]
	w.mu.Unlock()
	if running != nil {
		return running
	}
	if !everywhere && err == nil {
		if p.namespace == "" {
			return nil
		}
		if allowed, err := w.mayList(ctx, p, asked); err == nil && !allowed {
			return nil
		}
	}
	return w.run(p)
}

// mayListEverywhere asks, unless it is known, whether Shipper may list a resource in all namespaces. An error is not kept.
func (w *watches) mayListEverywhere(ctx context.Context, p collection, asked answers) (bool, error) {
	w.mu.Lock()
	everywhere, known := w.everywhere[p.resource]
	w.mu.Unlock()
	if known {
		return everywhere, nil
	}
	everywhere, err := w.mayList(ctx, collection{p.resource, metav1.NamespaceAll}, asked)
	if err == nil && (everywhere || p.namespace != "") {
		w.mu.Lock()
		w.everywhere[p.resource] = everywhere
		w.mu.Unlock()
	}
	return everywhere, err
}

// mayList asks, for refused requests in an audit log look like an attack. It asks once for each collection and pass, and holds no lock.
func (w *watches) mayList(ctx context.Context, p collection, asked answers) (bool, error) {
	if allowed, known := asked[p]; known {
		return allowed, nil
	}
	allowed, err := access.Own(ctx, w.rights, rights.Action{
		Verb: "list", Group: p.resource.Group, Resource: p.resource.Resource, Namespace: p.namespace,
	})
	if err != nil {
		log.FromContext(ctx).Error(err, "Shipper does not learn whether it may list selected objects", "resource", p.resource.String(),
			"namespace", p.namespace)
		return false, err
	}
	asked[p] = allowed
	return allowed, nil
}

// run starts the watch of a collection unless another pass has.
func (w *watches) run(p collection) *watch {
	informer := metadatainformer.NewFilteredMetadataInformer(w.client, p.resource, p.namespace, 0, nil, nil).Informer()
	w.mu.Lock()
	defer w.mu.Unlock()
	if running := w.running[p]; running != nil {
		return running
	}
	ctx, stop := context.WithCancel(w.ctx)
	synced := make(chan struct{})
	out := &watch{stop: stop, synced: synced}
	logger := log.FromContext(w.ctx).WithValues("resource", p.resource.String(), "namespace", p.namespace)
	// Both return errors only for informers that run already.
	_ = informer.SetTransform(strip)
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if apierrors.IsForbidden(err) {
			logger.Info("Shipper may no longer watch selected objects; the Applications that select them are read again", "reason", err.Error())
			w.drop(p, out)
			return
		}
		logger.V(1).Info("A watch of selected objects ended", "reason", err.Error())
	})
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, isInInitialList bool) {
			if !isInInitialList {
				w.changed(p.resource, nil, metadataOf(o))
			}
		},
		UpdateFunc: func(before, after any) { w.changed(p.resource, metadataOf(before), metadataOf(after)) },
		DeleteFunc: func(o any) { w.changed(p.resource, metadataOf(o), nil) },
	})
	w.running[p] = out
	if err != nil { // never for an informer that was just made
		close(synced)
		return out
	}
	go informer.RunWithContext(ctx)
	began := w.changes.clock.Now()
	go func() {
		defer close(synced)
		select {
		case <-ctx.Done():
		case <-registration.HasSyncedChecker().Done():
			if w.changes.clock.Since(began) > syncTimeout {
				w.late(p)
			}
		}
	}()
	return out
}

// late makes requests for the Applications that have read a collection before its watch had the present state.
func (w *watches) late(p collection) {
	w.mu.Lock()
	apps := w.interests.at(p)
	w.mu.Unlock()
	w.enqueue(apps, quietPeriod)
}

// drop ends a watch that the API server refuses, and makes requests for its Applications: their passes ask for the rights again.
func (w *watches) drop(p collection, refused *watch) {
	w.mu.Lock()
	refused.stop()
	if w.running[p] != refused {
		w.mu.Unlock()
		return
	}
	delete(w.running, p)
	delete(w.everywhere, p.resource)
	apps := w.interests.at(p)
	w.mu.Unlock()
	w.enqueue(apps, forbiddenDelay)
}

// changed makes requests for the Applications that select an object.
func (w *watches) changed(resource schema.GroupVersionResource, before, after *metav1.PartialObjectMetadata) {
	if !concerns(before, after) {
		return
	}
	w.mu.Lock()
	apps := w.interests.of(resource, before, after)
	w.mu.Unlock()
	w.enqueue(apps, quietPeriod)
}

// enqueue makes requests for Applications after a delay, as for changed objects.
func (w *watches) enqueue(apps []types.NamespacedName, delay time.Duration) {
	w.mu.Lock()
	queue := w.queue
	w.mu.Unlock()
	for _, app := range apps {
		w.changes.add(app)
		queue.AddAfter(ctrl.Request{NamespacedName: app}, delay)
	}
}

// request makes requests for Applications at once, which need not read more than they would have read before.
func (w *watches) request(apps []types.NamespacedName) {
	w.mu.Lock()
	queue := w.queue
	w.mu.Unlock()
	for _, app := range apps {
		queue.Add(ctrl.Request{NamespacedName: app})
	}
}

// stopUnused stops the watches that no Application needs, of those that one has needed before.
func (w *watches) stopUnused(before []interest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stop := func(p collection) {
		if running := w.running[p]; running != nil {
			running.stop()
			delete(w.running, p)
		}
	}
	for _, one := range before {
		if len(w.interests.byCollection[one.collection]) == 0 && one.namespace != metav1.NamespaceAll {
			stop(one.collection)
		}
		if w.interests.collections[one.resource] == 0 {
			stop(collection{one.resource, metav1.NamespaceAll})
			delete(w.everywhere, one.resource)
		}
	}
}

// metadataOf is the object of an event, also of a deletion that the watch has missed.
func metadataOf(object any) *metav1.PartialObjectMetadata {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	o, _ := object.(*metav1.PartialObjectMetadata)
	return o
}
