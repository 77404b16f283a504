// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Event is a change of one object in one cluster.
type Event struct {
	// Cluster is its name.
	Cluster string
	// Old is the object before the change; nil when it appeared, or was already there when the cluster was connected.
	Old client.Object
	// New is the object after the change; nil when it is gone.
	New client.Object
}

// Object is the newest form of the object there is.
func (e Event) Object() client.Object {
	if e.New != nil {
		return e.New
	}
	return e.Old
}

// Mapper says which requests an event makes.
type Mapper func(ctx context.Context, e Event) []reconcile.Request

// queue is where requests go.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// watch is a handler of the events of a kind.
type watch struct {
	kind   schema.GroupVersionKind // empty: every kind that is installed
	mapper Mapper
	ctx    context.Context
	queue  queue
	delay  time.Duration // until requests are made
}

// listener is a handler of changes of connections.
type listener struct {
	mapper func(ctx context.Context, cluster string) []reconcile.Request
	ctx    context.Context
	queue  queue
}

// kind is one kind's cache in one session.
type kind struct {
	informer  cache.Informer // nil when the kind cannot be watched
	typed     client.Object  // nil when only metadata is cached
	installed atomic.Bool    // set once Metadata was asked for
	attached  map[*watch]bool
}

func newKind(informer cache.Informer, typed client.Object) *kind {
	return &kind{informer: informer, typed: typed, attached: map[*watch]bool{}}
}

// Watch is a source of requests for the events of obj's kind in every cluster. The kind must be one that Member.Client
// caches, or Namespace, whose events come once Metadata was asked for one.
func (f *Fleet) Watch(obj client.Object, mapper Mapper) source.Source {
	return source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		gvk, err := apiutil.GVKForObject(obj, f.scheme)
		if err != nil {
			return fmt.Errorf("watching %T in all clusters: %w", obj, err)
		}
		f.addWatch(&watch{kind: gvk, mapper: mapper, ctx: ctx, queue: q})
		return nil
	})
}

// WatchInstalled is a source of requests for the events of every kind that Member.Metadata was asked for, in every
// cluster.
func (f *Fleet) WatchInstalled(mapper Mapper) source.Source {
	return source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		f.addWatch(&watch{mapper: mapper, ctx: ctx, queue: q})
		return nil
	})
}

// WatchMembers is a source of requests for changes of the connections themselves.
func (f *Fleet) WatchMembers(mapper func(ctx context.Context, cluster string) []reconcile.Request) source.Source {
	return source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.listeners = append(f.listeners, &listener{mapper: mapper, ctx: ctx, queue: q})
		return nil
	})
}

// addWatch attaches w to every connection there is; those to come find it in f.watches.
func (f *Fleet) addWatch(w *watch) {
	f.mu.Lock()
	f.watches = append(f.watches, w)
	var members []*Member
	for _, c := range f.connections {
		if c.member != nil {
			members = append(members, c.member)
		}
	}
	f.mu.Unlock()
	for _, m := range members {
		m.session.attach([]*watch{w})
	}
}

// allWatches is a copy of the list.
func (f *Fleet) allWatches() []*watch {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*watch(nil), f.watches...)
}

// notify wakes all listeners for a cluster.
func (f *Fleet) notify(cluster string) {
	f.mu.Lock()
	listeners := append([]*listener(nil), f.listeners...)
	f.mu.Unlock()
	for _, l := range listeners {
		l.wake(cluster)
	}
}

// wake makes the listener's requests for a cluster.
func (l *listener) wake(cluster string) {
	for _, request := range l.mapper(l.ctx, cluster) {
		look(l.queue, request)
	}
}

// look makes a request of what is only looked at again: nothing has happened to it but that its cluster was connected, or lost.
func look(q queue, request reconcile.Request) {
	if ranked, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		ranked.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority)}, request)
	} else {
		q.Add(request)
	}
}

// attach makes the events of this session's caches known to the watches, each once.
func (s *session) attach(watches []*watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for gvk, k := range s.kinds {
		for _, w := range watches {
			if k.informer == nil || k.attached[w] || !k.interests(gvk, w) {
				continue
			}
			k.attached[w] = true
			if _, err := k.informer.AddEventHandler(w.handler(s.name)); err != nil {
				log.FromContext(w.ctx).V(1).Info("A cache has stopped", "cluster", s.name, "kind", gvk.Kind, "reason", err.Error())
			}
		}
	}
}

// interests reports whether w asked for the events of this kind.
func (k *kind) interests(gvk schema.GroupVersionKind, w *watch) bool {
	if w.kind.Empty() {
		return k.installed.Load()
	}
	return w.kind == gvk
}

// handler turns the events of a cache into requests.
func (w *watch) handler(cluster string) toolscache.ResourceEventHandler {
	send := func(before, after any, initial bool) {
		e := Event{Cluster: cluster, Old: asObject(before), New: asObject(after)}
		if e.Object() == nil || e.Old != nil && e.New != nil && e.Old.GetResourceVersion() == e.New.GetResourceVersion() {
			return
		}
		for _, request := range w.mapper(w.ctx, e) {
			switch {
			case w.delay > 0:
				w.queue.AddAfter(request, w.delay)
			case initial:
				look(w.queue, request)
			default:
				w.queue.Add(request)
			}
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(object any, initial bool) { send(nil, object, initial) },
		UpdateFunc: func(before, after any) { send(before, after, false) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			send(object, nil, false)
		},
	}
}

// asObject is nil for what is not an object.
func asObject(in any) client.Object {
	if object, ok := in.(client.Object); ok {
		return object
	}
	return nil
}
