// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Known is, of each Application, which version its targets had at least: those that were last read from the API server or
// written by this process. It is safe for concurrent use.
type Known struct {
	mu   sync.Mutex
	apps map[types.NamespacedName]map[types.UID]string
}

// NewKnown returns a Known of nothing.
func NewKnown() *Known { return &Known{apps: map[types.NamespacedName]map[types.UID]string{}} }

// Wrote remembers a target as the API server answered when it was written. An answer that tells of no success tells nothing of
// what was written: all of the Application is read from the API server then.
func (k *Known) Wrote(target client.Object, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range ApplicationOf(target) {
		app := types.NamespacedName{Namespace: target.GetNamespace(), Name: name}
		if err != nil {
			delete(k.apps, app)
		} else if k.apps[app] != nil {
			k.apps[app][target.GetUID()] = target.GetResourceVersion()
		}
	}
}

// Forget an Application that is gone.
func (k *Known) Forget(app types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.apps, app)
}

// read remembers what was read from the API server, and nothing else of the Application.
func (k *Known) read(app types.NamespacedName, h History) {
	versions := map[types.UID]string{}
	for _, target := range h.targets() {
		versions[target.GetUID()] = target.GetResourceVersion()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.apps[app] = versions
}

// shows tells whether a history has all targets that are known of, as they were then or later, and no others.
func (k *Known) shows(app types.NamespacedName, h History) bool {
	targets := h.targets()
	k.mu.Lock()
	defer k.mu.Unlock()
	versions, known := k.apps[app]
	if !known || len(targets) != len(versions) {
		return false
	}
	for _, target := range targets {
		order, err := resourceversion.CompareResourceVersion(target.GetResourceVersion(), versions[target.GetUID()])
		if err != nil || order < 0 {
			return false
		}
	}
	return true
}

// targets are those that live Releases own.
func (h History) targets() []client.Object {
	var out []client.Object
	for _, r := range h.Live {
		if r.Installation != nil {
			out = append(out, r.Installation)
		}
		if r.Capacity != nil {
			out = append(out, r.Capacity)
		}
		if r.Traffic != nil {
			out = append(out, r.Traffic)
		}
	}
	return out
}

// Confirmed reads app's history so that what is decided by it is decided by no old news, with one small request where that
// will do. It is the caller's own.
//
// Of targets only this process writes what they ask for: the cache may be believed when it shows each as it was last written
// here. The leader before may have written them too, so that the first time they are read from the API server, and so they are
// whenever the Releases, where users say what they want and leaders how far they are, are not exactly as the cache shows them.
// That also finds out who leads no more and does not know it yet.
func (r *Reader) Confirmed(ctx context.Context, app *shipper.Application, known *Known) (History, error) {
	rels := &metav1.PartialObjectMetadataList{}
	rels.SetGroupVersionKind(shipper.GroupVersion.WithKind("ReleaseList"))
	err := r.live.List(ctx, rels, client.InNamespace(app.Namespace), client.MatchingLabels{shipper.AppLabel: app.Name})
	if err != nil {
		return History{}, fmt.Errorf("listing the releases of application %s/%s: %w", app.Namespace, app.Name, err)
	}
	key := client.ObjectKeyFromObject(app)
	cached, err := read(ctx, r.cached, app, 1, client.MatchingFields{r.index: app.Name})
	if err != nil || same(cached.All, rels.Items) && known.shows(key, cached) {
		return cached, err
	}
	live, err := r.Live(ctx, app)
	if err == nil {
		known.read(key, live)
	}
	return live, err
}

// same tells whether Releases are exactly those that were listed.
func same(rels []*shipper.Release, listed []metav1.PartialObjectMetadata) bool {
	versions := make(map[types.UID]string, len(listed))
	for i := range listed {
		versions[listed[i].UID] = listed[i].ResourceVersion
	}
	for _, rel := range rels {
		if versions[rel.UID] != rel.ResourceVersion {
			return false
		}
	}
	return len(rels) == len(versions)
}
