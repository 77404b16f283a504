// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
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
	// Initial is true for an object that was already there when the cluster was connected.
	Initial bool
}

// Object is the newest form of the object there is.
func (e Event) Object() client.Object {
	if e.New != nil {
		return e.New
	}
	return e.Old
}

// watch is a handler of the events of a kind.
type watch struct {
	kind   schema.GroupVersionKind // empty: every kind that is installed
	handle func(Event)
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

// Watch calls handle for the events of obj's kind in every cluster, also those that connect later. The kind must be one that
// Member.Client caches, or Namespace, whose events come once Metadata was asked for one. handle must not block.
func (f *Fleet) Watch(obj client.Object, handle func(Event)) error {
	gvk, err := apiutil.GVKForObject(obj, f.scheme)
	if err != nil {
		return fmt.Errorf("watching %T in all clusters: %w", obj, err)
	}
	f.addWatch(&watch{kind: gvk, handle: handle})
	return nil
}

// WatchInstalled calls handle for the events of every kind that Member.Metadata was asked for, in every cluster. handle must not block.
func (f *Fleet) WatchInstalled(handle func(Event)) {
	f.addWatch(&watch{handle: handle})
}

// WatchMembers calls handle with the name of each cluster whose connection changes. handle must not block.
func (f *Fleet) WatchMembers(handle func(cluster string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listeners = append(f.listeners, handle)
}

// Members is a source of requests for changes of the connections, named as the Clusters are.
func (f *Fleet) Members() source.Source { return named(f.WatchMembers) }

// KnownMembers is Members without those of removed clusters: a reconciler that removes clusters would make requests for itself without end.
func (f *Fleet) KnownMembers() source.Source {
	return named(func(handle func(cluster string)) {
		f.WatchMembers(func(cluster string) {
			if _, known := f.State(cluster); known {
				handle(cluster)
			}
		})
	})
}

// named makes requests that are named as clusters are.
func named(listen func(handle func(cluster string))) source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		listen(func(cluster string) { q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: cluster}}) })
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

// notify calls all listeners of a cluster.
func (f *Fleet) notify(cluster string) {
	f.mu.Lock()
	listeners := slices.Clone(f.listeners)
	f.mu.Unlock()
	for _, handle := range listeners {
		handle(cluster)
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
				log.Log.WithName("fleet").V(1).Info("A cache has stopped", "cluster", s.name, "kind", gvk.Kind, "reason", err.Error())
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

// handler passes the events of a cache on.
func (w *watch) handler(cluster string) toolscache.ResourceEventHandler {
	send := func(before, after any, initial bool) {
		e := Event{Cluster: cluster, Old: asObject(before), New: asObject(after), Initial: initial}
		if e.Object() == nil || e.Old != nil && e.New != nil && e.Old.GetResourceVersion() == e.New.GetResourceVersion() {
			return
		}
		w.handle(e)
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
