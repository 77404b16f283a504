// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
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
)

// syncTimeout bounds how long a pass blocks on new watches. A watch that is later makes another pass.
const syncTimeout = 2 * time.Second

// watches are the metadata watches of what Applications select. They are a source of requests, and stop with the controller. They are safe
// for concurrent use.
type watches struct {
	client metadata.Interface
	// rights takes reviews of Shipper's own.
	rights  client.Writer
	changes *changes

	// starting is held while watches are started and stopped.
	starting sync.Mutex
	// everywhere has for each watched resource whether Shipper may list it in all namespaces. starting guards it.
	everywhere map[schema.GroupVersionResource]bool

	mu        sync.Mutex
	ctx       context.Context
	queue     workqueue.TypedRateLimitingInterface[ctrl.Request]
	interests interests
	running   map[place]*watch
}

// watch is one of the watches.
type watch struct {
	stop   context.CancelFunc
	synced <-chan struct{}
}

func newWatches(client metadata.Interface, rights client.Writer, changes *changes) *watches {
	return &watches{
		client: client, rights: rights, changes: changes, everywhere: map[schema.GroupVersionResource]bool{}, running: map[place]*watch{},
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
// what changes after set returns makes a request.
func (w *watches) set(ctx context.Context, app types.NamespacedName, list []interest) {
	needed := w.start(ctx, app, list)
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

// start starts the watches that an Application needs, returns them, and stops those that none needs any more.
func (w *watches) start(ctx context.Context, app types.NamespacedName, list []interest) []*watch {
	w.starting.Lock()
	defer w.starting.Unlock()
	w.mu.Lock()
	before := w.interests.byApp[app]
	w.interests.set(app, list)
	w.mu.Unlock()
	var needed []*watch
	for _, one := range list {
		if running := w.ensure(ctx, one.place); running != nil {
			needed = append(needed, running)
		}
	}
	w.stopUnused(before)
	return needed
}

// known are the places that an Application is interested in.
func (w *watches) known(app types.NamespacedName) []interest {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.interests.byApp[app]
}

// ensure returns the watch of a place, and starts it if there is none. It is nil where Shipper may not list the place.
func (w *watches) ensure(ctx context.Context, p place) *watch {
	everywhere, known := w.everywhere[p.resource]
	if !known {
		if everywhere = w.mayList(ctx, place{p.resource, metav1.NamespaceAll}); everywhere || p.namespace != "" {
			w.everywhere[p.resource] = everywhere
		}
	}
	if everywhere {
		p.namespace = metav1.NamespaceAll
	}
	w.mu.Lock()
	running := w.running[p]
	w.mu.Unlock()
	if running != nil {
		return running
	}
	if !everywhere && (p.namespace == "" || !w.mayList(ctx, p)) {
		return nil
	}
	return w.run(p)
}

// mayList asks, for refused requests in an audit log look like an attack. Only a refusal counts: a watch tries again by itself after
// errors.
func (w *watches) mayList(ctx context.Context, p place) bool {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "list", Group: p.resource.Group, Version: p.resource.Version, Resource: p.resource.Resource, Namespace: p.namespace,
		},
	}}
	err := w.rights.Create(ctx, review)
	return err != nil || review.Status.Allowed
}

// run starts the watch of a place.
func (w *watches) run(p place) *watch {
	informer := metadatainformer.NewFilteredMetadataInformer(w.client, p.resource, p.namespace, 0, nil, nil).Informer()
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, stop := context.WithCancel(w.ctx)
	logger := log.FromContext(w.ctx)
	// Both return errors only for informers that run already.
	_ = informer.SetTransform(strip)
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		logger.V(1).Info("A watch of selected objects ended", "resource", p.resource.String(), "namespace", p.namespace, "reason", err.Error())
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
	synced := make(chan struct{})
	out := &watch{stop: stop, synced: synced}
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

// late makes requests for the Applications that have read a place before its watch had the present state.
func (w *watches) late(p place) {
	w.mu.Lock()
	apps := w.interests.at(p)
	w.mu.Unlock()
	w.enqueue(apps)
}

// changed makes requests for the Applications that select an object.
func (w *watches) changed(resource schema.GroupVersionResource, before, after *metav1.PartialObjectMetadata) {
	if !concerns(before, after) {
		return
	}
	w.mu.Lock()
	apps := w.interests.of(resource, before, after)
	w.mu.Unlock()
	w.enqueue(apps)
}

func (w *watches) enqueue(apps []types.NamespacedName) {
	w.mu.Lock()
	queue := w.queue
	w.mu.Unlock()
	for _, app := range apps {
		w.changes.add(app)
		queue.AddAfter(ctrl.Request{NamespacedName: app}, settle)
	}
}

// stopUnused stops the watches that no Application needs, of those that one has needed before.
func (w *watches) stopUnused(before []interest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stop := func(p place) {
		if running := w.running[p]; running != nil {
			running.stop()
			delete(w.running, p)
		}
	}
	for _, one := range before {
		if len(w.interests.byPlace[one.place]) == 0 && one.namespace != metav1.NamespaceAll {
			stop(one.place)
		}
		if w.interests.places[one.resource] == 0 {
			stop(place{one.resource, metav1.NamespaceAll})
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
