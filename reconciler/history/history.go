// SPDX-License-Identifier: Apache-2.0

// Package history reads an Application's Releases with their targets, from the cache or, before something is decided
// that old news would make wrong, from the API server itself.
package history

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/index"
)

// History is what was read of an Application.
type History struct {
	// All are the Releases that carry the Application's label, its own or not.
	All []*shipper.Release
	// Live are its own that have a valid generation and are not being deleted, oldest first, with the targets they own.
	Live []strategy.Release
	// Leaving are its own that are being deleted and kept by shipper.RolloutFinalizer, oldest first, with the targets they own. Those
	// whose generation is invalid come last.
	Leaving []strategy.Release
	// Broken are its own without a valid generation.
	Broken []*shipper.Release
	// Foreign says, by name of a live Release, which targets of that name it does not own or are being deleted.
	Foreign map[string][]string
	// Stuck are the names of InstallationTargets whose Release is gone while one of their clusters does not answer: it
	// cannot be said when they go.
	Stuck []string

	// targets are all that carry the Application's label, by kind.
	targets map[string][]client.Object
}

// Releases are the live ones without their targets, oldest first.
func (h History) Releases() []*shipper.Release {
	out := make([]*shipper.Release, len(h.Live))
	for i := range h.Live {
		out[i] = h.Live[i].Release
	}
	return out
}

// Newest is the newest live Release; nil when there is none.
func (h History) Newest() *shipper.Release {
	if len(h.Live) == 0 {
		return nil
	}
	return h.Live[len(h.Live)-1].Release
}

// byApplication is the index of what a history is made of by the Application it belongs to.
const byApplication = "application"

// Reader reads histories. All who read them share one.
type Reader struct {
	cached client.Reader
	live   client.Reader
}

// NewReader returns a Reader and makes the index that it needs of c, which cached reads from: one Reader of a cache can be made.
func NewReader(ctx context.Context, c cache.Informers, cached, live client.Reader) (*Reader, error) {
	for _, kind := range kinds() {
		if err := index.Within(ctx, c, kind, byApplication, ApplicationOf); err != nil {
			return nil, fmt.Errorf("setting up histories: %w", err)
		}
	}
	return &Reader{cached: cached, live: live}, nil
}

// kinds are those a history is made of.
func kinds() []client.Object {
	return []client.Object{
		&shipper.Release{}, &shipper.InstallationTarget{}, &shipper.CapacityTarget{}, &shipper.TrafficTarget{},
	}
}

// ApplicationOf is the name of the Application that an object says it belongs to; nothing when it says none.
func ApplicationOf(o client.Object) []string {
	if name := o.GetLabels()[shipper.AppLabel]; name != "" {
		return []string{name}
	}
	return nil
}

// Cached reads app's history from the cache. What it returns is the cache's own and must not be changed: values may be
// large, and most passes change nothing.
func (r *Reader) Cached(ctx context.Context, app *shipper.Application) (History, error) {
	return read(ctx, r.cached, app, true, client.MatchingFields{byApplication: app.Name}, client.UnsafeDisableDeepCopy)
}

// Releases are those that carry an Application's label, its own or not, from the cache. They are the cache's own and must not be
// changed.
func (r *Reader) Releases(ctx context.Context, app client.ObjectKey) ([]*shipper.Release, error) {
	var list shipper.ReleaseList
	err := r.cached.List(ctx, &list, client.InNamespace(app.Namespace), client.MatchingFields{byApplication: app.Name},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the releases of application %s: %w", app, err)
	}
	out := make([]*shipper.Release, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}

// Live reads app's Releases from the API server, without their targets; they are the caller's own.
func (r *Reader) Live(ctx context.Context, app *shipper.Application) (History, error) {
	return read(ctx, r.live, app, false, client.MatchingLabels{shipper.AppLabel: app.Name})
}

// read lists the Releases, and the targets if they are wanted.
func read(
	ctx context.Context, from client.Reader, app *shipper.Application, targets bool, by ...client.ListOption,
) (History, error) {
	var (
		rels shipper.ReleaseList
		its  shipper.InstallationTargetList
		cts  shipper.CapacityTargetList
		tts  shipper.TrafficTargetList
	)
	by = append(by, client.InNamespace(app.Namespace))
	// Releases come last: a target whose Release is not there yet is of no use, and the reverse happens all the time.
	lists := []client.ObjectList{&its, &cts, &tts, &rels}
	if !targets {
		lists = []client.ObjectList{&rels}
	}
	var err error
	for i := 0; i < len(lists) && err == nil; i++ {
		err = from.List(ctx, lists[i], by...)
	}
	if err != nil {
		return History{}, fmt.Errorf("reading the history of application %s/%s: %w", app.Namespace, app.Name, err)
	}
	h := History{Foreign: map[string][]string{}, targets: map[string][]client.Object{}}
	for i := range rels.Items {
		h.All = append(h.All, &rels.Items[i])
	}
	ordered, broken := stamp.SortByGeneration(stamp.Own(app, h.All))
	h.Broken = alive(broken)
	byName := map[string]*strategy.Release{}
	h.Live = make([]strategy.Release, 0, len(ordered))
	for _, rel := range alive(ordered) {
		h.Live = append(h.Live, strategy.Release{Release: rel})
		byName[rel.Name] = &h.Live[len(h.Live)-1]
	}
	for _, rel := range slices.Concat(ordered, broken) {
		if kept(rel) {
			h.Leaving = append(h.Leaving, strategy.Release{Release: rel})
		}
	}
	for i := range h.Leaving {
		byName[h.Leaving[i].Release.Name] = &h.Leaving[i]
	}
	h.Stuck = stuck(h.All, its.Items)
	h.own(byName, its.Items, cts.Items, tts.Items)
	return h, nil
}

// own gives live and leaving Releases the targets that they own.
func (h *History) own(
	byName map[string]*strategy.Release, its []shipper.InstallationTarget, cts []shipper.CapacityTarget, tts []shipper.TrafficTarget,
) {
	for i := range its {
		h.targets["InstallationTarget"] = append(h.targets["InstallationTarget"], &its[i])
		if r := h.claims(byName, "InstallationTarget", &its[i]); r != nil {
			r.Installation = &its[i]
		}
	}
	for i := range cts {
		h.targets["CapacityTarget"] = append(h.targets["CapacityTarget"], &cts[i])
		if r := h.claims(byName, "CapacityTarget", &cts[i]); r != nil {
			r.Capacity = &cts[i]
		}
	}
	for i := range tts {
		h.targets["TrafficTarget"] = append(h.targets["TrafficTarget"], &tts[i])
		if r := h.claims(byName, "TrafficTarget", &tts[i]); r != nil {
			r.Traffic = &tts[i]
		}
	}
}

// stuck finds the InstallationTargets that no Release owns any more and that are kept by a cluster out of reach. Whether
// they are being deleted is not asked: the garbage collector may be later than who makes the next Release.
func stuck(rels []*shipper.Release, its []shipper.InstallationTarget) []string {
	var out []string
	for i := range its {
		it := &its[i]
		away := slices.ContainsFunc(it.Status.Clusters, func(c shipper.ClusterInstallationStatus) bool {
			operational := shipper.FindCondition(c.Conditions, shipper.TargetOperational)
			return operational != nil && operational.Status == corev1.ConditionFalse
		})
		if away && !slices.ContainsFunc(rels, func(rel *shipper.Release) bool { return owned(it, rel.UID) }) {
			out = append(out, it.Name)
		}
	}
	return out
}

func alive(rels []*shipper.Release) []*shipper.Release {
	var out []*shipper.Release
	for _, rel := range rels {
		if rel.DeletionTimestamp.IsZero() {
			out = append(out, rel)
		}
	}
	return out
}

// kept reports whether a Release is being deleted, and stays until Shipper lets it go.
func kept(rel *shipper.Release) bool {
	return !rel.DeletionTimestamp.IsZero() && slices.Contains(rel.Finalizers, shipper.RolloutFinalizer)
}

// claims returns the Release that owns a target. A target that has only its name is noted. One that was deleted is in effect as
// long as a finalizer of Shipper's keeps it.
func (h *History) claims(byName map[string]*strategy.Release, kind string, target metav1.Object) *strategy.Release {
	r := byName[target.GetName()]
	switch {
	case r == nil:
		return nil
	case owned(target, r.Release.UID) && keptTarget(target):
		return r
	case !target.GetDeletionTimestamp().IsZero():
		h.Foreign[target.GetName()] = append(h.Foreign[target.GetName()], kind+" is being deleted")
		return nil
	case !owned(target, r.Release.UID):
		h.Foreign[target.GetName()] = append(h.Foreign[target.GetName()], kind+" belongs to another Release of that name")
		return nil
	}
	return r
}

func keptTarget(target metav1.Object) bool {
	return slices.Contains(target.GetFinalizers(), shipper.RolloutFinalizer) ||
		slices.Contains(target.GetFinalizers(), shipper.InstallationFinalizer)
}

func owned(target metav1.Object, by types.UID) bool {
	for _, ref := range target.GetOwnerReferences() {
		if ref.UID == by {
			return true
		}
	}
	return false
}
