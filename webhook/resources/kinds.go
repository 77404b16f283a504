// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
)

// Kind is a kind that the API server serves.
type Kind struct {
	schema.GroupVersionKind
	// Resource is the plural in URLs and in RBAC.
	Resource   string
	Namespaced bool
}

// GroupResource is the kind as RBAC names it.
func (k Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// Kinds finds kinds that the API server serves.
type Kinds interface {
	// Find returns a kind in a version; empty means the preferred one. It returns ErrNotServed for a kind that is not served, and another
	// error if the API server has not said within ctx.
	Find(ctx context.Context, gk schema.GroupKind, version string) (Kind, error)
	// InNamespaces are the kinds with namespaces that can be listed, in their preferred versions.
	InNamespaces(ctx context.Context) ([]Kind, error)
}

// ErrNotServed means that the API server does not serve a kind.
var ErrNotServed = errors.New("this API server does not serve it")

const (
	// listTTL is how long the list of kinds is cached.
	listTTL = time.Minute
	// maxLookUps bounds the look-ups of kinds that run, also after the requests that began them have ended.
	maxLookUps = 8
	// maxDiscoveries bounds those of kinds that were not found before and may be served: each makes the mapper discover their group.
	maxDiscoveries = 2
	// missingTTL is how long the API server is not asked again for a kind that it does not serve.
	missingTTL = 5 * time.Second
	// maxMissing bounds the kinds that are remembered as not served.
	maxMissing = 1024
)

// Discovered finds kinds by discovery. mapper has to look a kind up again that it does not know, as that of controller-runtime does.
func Discovered(mapper meta.RESTMapper, api discovery.DiscoveryInterface, now clock.PassiveClock) Kinds {
	return &discovered{
		mapper: mapper, api: api, clock: now, inventories: discoveries{api: api},
		slots: semaphore.NewWeighted(maxLookUps), discoveries: semaphore.NewWeighted(maxDiscoveries),
		served: map[look]bool{}, missing: map[look]time.Time{},
	}
}

// look is what a look-up asks for.
type look struct {
	schema.GroupKind
	version string
}

type discovered struct {
	mapper meta.RESTMapper
	api    discovery.DiscoveryInterface
	clock  clock.PassiveClock
	// inventories say which kinds may be served. slots are for those, and for lists; discoveries for kinds of groups that do not respond.
	inventories        discoveries
	slots, discoveries *semaphore.Weighted

	lock   sync.Mutex
	listed []Kind
	at     time.Time
	served map[look]bool
	// missing has when a kind was found not to be served.
	missing map[look]time.Time
}

// Find asks the mapper. Kinds that were never found cannot delay the look-ups of others.
func (d *discovered) Find(ctx context.Context, gk schema.GroupKind, version string) (Kind, error) {
	var versions []string
	if version != "" {
		versions = []string{version}
	}
	this, slots := look{gk, version}, d.slots
	served, missing := d.remembered(this)
	if missing {
		return Kind{}, ErrNotServed
	}
	if !served {
		all, err := d.inventories.await(ctx)
		switch {
		case err != nil:
			return Kind{}, fmt.Errorf("looking for kind %s: %w", gk, err)
		case !all.has[this] && !all.partial:
			d.remember(this, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions})
			return Kind{}, ErrNotServed
		case !all.has[this]:
			slots = d.discoveries
		}
	}
	found, err := within(ctx, slots, func() (*meta.RESTMapping, error) {
		if _, missing := d.remembered(this); missing { // since it has a slot
			return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
		}
		found, err := d.mapper.RESTMapping(gk, versions...)
		d.remember(this, err)
		return found, err
	})
	switch {
	case meta.IsNoMatchError(err):
		return Kind{}, ErrNotServed
	case err != nil:
		return Kind{}, fmt.Errorf("looking for kind %s: %w", gk, err)
	}
	return Kind{
		GroupVersionKind: found.GroupVersionKind, Resource: found.Resource.Resource,
		Namespaced: found.Scope.Name() == meta.RESTScopeNameNamespace,
	}, nil
}

// remembered reports what recent look-ups have found.
func (d *discovered) remembered(this look) (served, missing bool) {
	d.lock.Lock()
	defer d.lock.Unlock()
	at, missing := d.missing[this]
	return d.served[this], missing && d.clock.Since(at) < missingTTL
}

// remember keeps whether a kind is served; an error of another kind says nothing.
func (d *discovered) remember(this look, err error) {
	d.lock.Lock()
	defer d.lock.Unlock()
	switch {
	case err == nil:
		d.served[this] = true
		delete(d.missing, this)
	case meta.IsNoMatchError(err):
		if len(d.missing) >= maxMissing {
			clear(d.missing)
		}
		delete(d.served, this)
		d.missing[this] = d.clock.Now()
	}
}

// InNamespaces asks the API server at most once in listTTL. Groups whose own server does not respond are left out.
func (d *discovered) InNamespaces(ctx context.Context) ([]Kind, error) {
	if known := d.known(); known != nil {
		return known, nil
	}
	return within(ctx, d.slots, func() ([]Kind, error) {
		lists, err := discovery.ServerPreferredNamespacedResources(d.api)
		if err != nil && len(lists) == 0 {
			return nil, fmt.Errorf("listing kinds: %w", err)
		}
		kinds := kindsOf(lists)
		d.lock.Lock()
		defer d.lock.Unlock()
		d.listed, d.at = kinds, d.clock.Now()
		return kinds, nil
	})
}

// known is the cached list; nil if there is none, or if it is old.
func (d *discovered) known() []Kind {
	d.lock.Lock()
	defer d.lock.Unlock()
	if d.clock.Since(d.at) > listTTL {
		return nil
	}
	return d.listed
}

// kindsOf are the kinds in discovery that can be listed.
func kindsOf(lists []*metav1.APIResourceList) []Kind {
	var out []Kind
	for _, list := range lists {
		for i := range list.APIResources {
			if r := &list.APIResources[i]; slices.Contains(r.Verbs, "list") {
				out = append(out, Kind{
					GroupVersionKind: groupVersionKind(list.GroupVersion, r), Resource: r.Name, Namespaced: r.Namespaced,
				})
			}
		}
	}
	return out
}

// groupVersionKind is the kind of a resource in a list of a group and version.
func groupVersionKind(list string, r *metav1.APIResource) schema.GroupVersionKind {
	gv, _ := schema.ParseGroupVersion(list) // an API server lists no others
	return gv.WithKind(r.Kind)
}

// within returns the result of f, or an error once ctx ends. f goes on then: it fills a cache for the next request.
func within[T any](ctx context.Context, slots *semaphore.Weighted, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	if err := slots.Acquire(ctx, 1); err != nil {
		return *new(T), fmt.Errorf("the API server takes long to list its kinds: %w", err)
	}
	done := make(chan result, 1)
	go func() {
		defer slots.Release(1)
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return *new(T), fmt.Errorf("the API server takes long to list its kinds: %w", ctx.Err())
	}
}
