// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fence"
)

// lately is for how long Releases that the API server showed as the cache did need not be looked at again. Of these, others than this
// process write users' wishes alone, which the cache shows when it hears of them, as if they had come then; this is how much later
// it may be should a watch be silent. That nobody else writes is the term's to see (reconciler/fence).
const lately = time.Minute

// WriteTracker is, of each Application, which version it, its Releases and their targets had at least: those that were last read from the
// API server or written by this process. All reconcilers that write any of these share one. It is safe for concurrent use.
type WriteTracker struct {
	mu   sync.Mutex
	apps map[types.NamespacedName]*versions
}

// versions are what is known of one Application.
type versions struct {
	// writes counts what was written: what was read meanwhile may be older.
	writes int
	// app is by UID of the Application, of which there may be another of that name; nil when nothing is known of it.
	app map[types.UID]string
	// targets and releases are by UID; nil when nothing is known of them.
	targets, releases map[types.UID]string
	// confirmed is when the API server was last asked for the versions of Releases.
	confirmed time.Time
}

// NewWriteTracker returns a Known of nothing.
func NewWriteTracker() *WriteTracker {
	return &WriteTracker{apps: map[types.NamespacedName]*versions{}}
}

// Wrote remembers a Release or a target as the API server answered when it was written. An answer that tells of no success tells
// nothing of what was written: all of the Application's are read from the API server then.
func (k *WriteTracker) Wrote(o client.Object, err error) {
	k.wrote(o, func(v *versions) *map[types.UID]string {
		if _, ok := o.(*shipper.Release); ok {
			return &v.releases
		}
		return &v.targets
	}, err == nil)
}

// Deleted remembers that a Release was deleted, which caches do not show at once.
func (k *WriteTracker) Deleted(rel *shipper.Release) {
	k.wrote(rel, func(v *versions) *map[types.UID]string { return &v.releases }, false)
}

// wrote remembers which version an object has, or that nothing is known of those of its kind.
func (k *WriteTracker) wrote(o client.Object, of func(*versions) *map[types.UID]string, is bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range ApplicationOf(o) {
		v := k.apps[types.NamespacedName{Namespace: o.GetNamespace(), Name: name}]
		if v == nil {
			continue
		}
		v.writes++
		known := of(v)
		if !is {
			*known = nil
		}
		// Of two who wrote one after the other, the first may be the later to say so.
		if *known != nil && !earlier(o, *known) {
			(*known)[o.GetUID()] = o.GetResourceVersion()
		}
	}
}

// WroteApplication is Wrote for an Application.
func (k *WriteTracker) WroteApplication(app *shipper.Application, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if v := k.apps[client.ObjectKeyFromObject(app)]; v != nil {
		v.writes++
		if v.app = nil; err == nil {
			v.app = map[types.UID]string{app.UID: app.ResourceVersion}
		}
	}
}

// Forget an Application that is gone.
func (k *WriteTracker) Forget(app types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.apps, app)
}

// Distrust has the API server asked the next time, however lately it was: for what cannot be undone.
func (k *WriteTracker) Distrust(app types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if v := k.apps[app]; v != nil {
		v.confirmed = time.Time{}
	}
}

// begin is to be called before an Application or its targets are read from the API server. What it returns remembers what was read,
// unless something was written meanwhile.
func (k *WriteTracker) begin(app types.NamespacedName) (read func(remember func(*versions))) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.apps[app] == nil {
		k.apps[app] = &versions{}
	}
	v, began := k.apps[app], k.apps[app].writes
	return func(remember func(*versions)) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if v.writes == began {
			remember(v)
		}
	}
}

// shows tells whether a history has all targets that are known of, as they were then or later, and no others.
func (k *WriteTracker) shows(app types.NamespacedName, h History) bool {
	targets := h.targets()
	k.mu.Lock()
	defer k.mu.Unlock()
	v := k.apps[app]
	if v == nil || v.targets == nil {
		return false
	}
	known := v.targets
	return len(targets) == len(known) && !slices.ContainsFunc(targets, func(target client.Object) bool {
		return older(target, known)
	})
}

// showsLately tells whether a history has all Releases and targets that are known of, as they were then or later, and the API server
// has been asked lately whether there are later ones.
func (k *WriteTracker) showsLately(app types.NamespacedName, h History, now time.Time) bool {
	if !k.shows(app, h) {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	v := k.apps[app]
	if v == nil || v.releases == nil {
		return false
	}
	since := fence.Since(now, v.confirmed)
	if since < 0 || since >= lately {
		return false
	}
	shown := make(map[types.UID]*shipper.Release, len(h.All))
	for _, rel := range h.All {
		shown[rel.UID] = rel
	}
	for uid := range v.releases {
		if rel := shown[uid]; rel == nil || older(rel, v.releases) {
			return false
		}
	}
	return true
}

// showsApplication tells whether an Application is as it was known to be, or later.
func (k *WriteTracker) showsApplication(app *shipper.Application) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	v := k.apps[client.ObjectKeyFromObject(app)]
	return v != nil && !older(app, v.app)
}

// earlier tells whether an object is known to be an earlier version than is known.
func earlier(o client.Object, known map[types.UID]string) bool {
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), known[o.GetUID()])
	return err == nil && order < 0
}

// older tells whether an object is an earlier version than is known, or whether that cannot be told.
func older(o client.Object, known map[types.UID]string) bool {
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), known[o.GetUID()])
	return err != nil || order < 0
}

// targets are those that live Releases own.
func (h History) targets() []client.Object {
	var out []client.Object
	for _, r := range slices.Concat(h.Live, h.Leaving) {
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

// Application reads an Application so that nothing of it is older than what this process wrote into it, or the first time than it
// is: what else is in it are wishes, which may be seen a moment later. It is the caller's own.
func (r *Reader) Application(ctx context.Context, key types.NamespacedName, known *WriteTracker) (*shipper.Application, error) {
	app := &shipper.Application{}
	err := r.cached.Get(ctx, key, app)
	if err != nil || known.showsApplication(app) {
		return app, err
	}
	read := known.begin(key)
	live := &shipper.Application{}
	if err := r.live.Get(ctx, key, live); err != nil {
		return live, err
	}
	read(func(v *versions) { v.app = map[types.UID]string{live.UID: live.ResourceVersion} })
	return live, nil
}

// Verified reads app's history so that what is decided by it is decided by no old news, with one small request a minute where that
// will do. It is the caller's own.
//
// Of targets only this process writes what they ask for: the cache may be believed when it shows each as it was last written
// here. The leader before may have written them too, so that the first time they are read from the API server, and so they are
// whenever the Releases, where users say what they want and leaders how far they are, are not exactly as the cache shows them.
// Without Releases there are no targets. What was found to be so lately need not be asked again, as long as the cache shows what was
// written here since.
func (r *Reader) Verified(ctx context.Context, app *shipper.Application, known *WriteTracker, now time.Time) (History, error) {
	key, by := client.ObjectKeyFromObject(app), client.MatchingFields{byApplication: app.Name}
	cached, err := read(ctx, r.cached, app, 1, by)
	if err != nil || known.showsLately(key, cached, now) {
		return cached, err
	}
	remember := known.begin(key)
	rels := &metav1.PartialObjectMetadataList{}
	rels.SetGroupVersionKind(shipper.GroupVersion.WithKind("ReleaseList"))
	err = r.live.List(ctx, rels, client.InNamespace(app.Namespace), client.MatchingLabels{shipper.AppLabel: app.Name})
	if err != nil {
		return History{}, fmt.Errorf("listing the releases of application %s/%s: %w", app.Namespace, app.Name, err)
	}
	if cached, err = read(ctx, r.cached, app, 1, by); err != nil {
		return cached, err
	}
	if same(cached.All, rels.Items) && (len(cached.All) == 0 || known.shows(key, cached)) {
		remember(func(v *versions) {
			v.targets, v.releases, v.confirmed = versionsOf(cached.targets()), versionsOf(cached.All), now
		})
		return cached, nil
	}
	remember = known.begin(key)
	live, err := r.Live(ctx, app)
	if err != nil {
		return live, err
	}
	remember(func(v *versions) {
		v.targets, v.releases, v.confirmed = versionsOf(live.targets()), versionsOf(live.All), now
	})
	return live, nil
}

// versionsOf objects, by UID.
func versionsOf[T client.Object](objects []T) map[types.UID]string {
	out := make(map[types.UID]string, len(objects))
	for _, o := range objects {
		out[o.GetUID()] = o.GetResourceVersion()
	}
	return out
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
