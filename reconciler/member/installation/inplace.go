// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/chart/lru"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/applyset"
	"shipper.dev/shipper/reconciler/retry"
)

// InPlace is a workload in place, as the anchor of a Release lists it.
type InPlace struct {
	// GVK is its kind.
	GVK schema.GroupVersionKind
	// Key is its name.
	Key types.NamespacedName
	// Digest is that of the object that the Release has stored.
	Digest string
	// Replicas is its number of Pods at full capacity; 0 for a DaemonSet.
	Replicas int32
}

// deploymentKind is the kind of workloads that run side by side.
var deploymentKind = schema.GroupKind{Group: "apps", Kind: "Deployment"}

// Installed is what the anchor of a Release lists in a cluster.
type Installed struct {
	// Release is its name.
	Release string
	// InPlace are its workloads in place, and Deployments the names of those that run side by side.
	InPlace     []InPlace
	Deployments []string
	owner       metav1.OwnerReference
}

// Find is the workload of a kind and name; nil if the Release has none.
func (i *Installed) Find(kind schema.GroupKind, key types.NamespacedName) *InPlace {
	n := slices.IndexFunc(i.InPlace, func(w InPlace) bool { return w.GVK.GroupKind() == kind && w.Key == key })
	if n < 0 {
		return nil
	}
	return &i.InPlace[n]
}

// mostListedItems bound what Anchors remember, in workloads.
const mostListedItems = 200000

// Anchors remember what anchors list: each pass over Pods reads it, and parsing is most of what that costs. They are safe for concurrent
// use.
type Anchors struct {
	known *lru.Cache[types.UID, listing]
}

// listing is what a version of an anchor lists; nil if nothing that counts.
type listing struct {
	version string
	is      *Installed
}

// NewAnchors makes Anchors that remember nothing yet.
func NewAnchors() *Anchors { return &Anchors{lru.New[types.UID, listing](mostListedItems)} }

// of is what an anchor lists.
func (k *Anchors) of(m *fleet.Member, cm *corev1.ConfigMap) *Installed {
	if known, ok := k.known.Get(cm.UID); ok && known.version == cm.ResourceVersion {
		return known.is
	}
	is, size := installedOf(m, cm), int64(1)
	if is != nil {
		size += int64(len(is.InPlace) + len(is.Deployments))
	}
	k.known.Put(cm.UID, listing{cm.ResourceVersion, is}, size)
	return is
}

// Of are the Releases of an Application whose anchors are in a cluster, by name. Anchors that are being deleted, that are of another
// management cluster or that list nothing yet are left out. What is returned must not be changed.
func (k *Anchors) Of(ctx context.Context, m *fleet.Member, app types.NamespacedName) ([]Installed, error) {
	var list corev1.ConfigMapList
	err := m.Client().List(ctx, &list, client.InNamespace(app.Namespace), client.MatchingFields{fleet.ByApp: app.Name},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing anchors: %w", err)
	}
	var out []Installed
	for n := range list.Items {
		cm := &list.Items[n]
		if !fleet.IsAnchor(cm) {
			continue
		}
		if one := k.of(m, cm); one != nil {
			out = append(out, *one)
		}
	}
	slices.SortFunc(out, func(a, b Installed) int { return cmp.Compare(a.Release, b.Release) })
	return out, nil
}

// ListedOf names the Deployments that run side by side of the Releases that Of returns.
func (k *Anchors) ListedOf(ctx context.Context, m *fleet.Member, app types.NamespacedName) (map[string][]string, error) {
	all, err := k.Of(ctx, m, app)
	out := make(map[string][]string, len(all))
	for _, one := range all {
		out[one.Release] = append([]string{}, one.Deployments...) // not nil: it is known that there are no others
	}
	return out, err
}

// installedOf is what an anchor lists; nil if it does not count.
func installedOf(m *fleet.Member, cm *corev1.ConfigMap) *Installed {
	a := anchorOf(m, cm)
	if a.deleting || a.claim != nil || len(a.inventory) == 0 && a.rendered == "" {
		return nil
	}
	one := &Installed{Release: cm.Labels[shipper.OwnedByLabel], owner: a.reference(cm.Name)}
	for _, entry := range a.inventory {
		switch {
		case entry.InPlace && len(one.InPlace) == lots.MaxInPlace: // such a chart is refused: a user has edited the anchor
		case entry.InPlace:
			one.InPlace = append(one.InPlace, InPlace{entry.gvk(), entry.key(), entry.Digest, entry.Replicas})
		case entry.gvk().GroupKind() == deploymentKind:
			one.Deployments = append(one.Deployments, entry.Name)
		}
	}
	return one
}

// Stored is a workload in place as a Release has rendered it in a cluster.
type Stored struct {
	// Object is the object to write, without owners.
	Object *unstructured.Unstructured
	from   sources
	key    types.NamespacedName
}

// Rendered is what a Release has rendered and stored in a cluster. The zero value is usable, and reads it when it is first asked for: it
// may be large. It is not safe for concurrent use.
type Rendered struct {
	stored *storedRendering
	read   bool
}

// Find finds a workload in place of a Release, of which it is the target.
func (r *Rendered) Find(ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget, w InPlace) (*Stored, error) {
	if !r.read {
		var err error
		if r.stored, err = readStored(ctx, m, it); err != nil {
			return nil, err
		}
		r.read = true
	}
	if r.stored != nil {
		for _, o := range r.stored.objects {
			if o.digest == w.Digest && o.content.GroupVersionKind() == w.GVK && o.content.GetName() == w.Key.Name {
				out := &Stored{Object: o.in(w.Key.Namespace), from: sourcesOf(it), key: w.Key}
				out.from.found = r.stored.found
				return out, nil
			}
		}
	}
	message := fmt.Sprintf("what Release %q has rendered is not stored in the cluster yet", it.Name)
	return nil, &problem{shipper.InProgress, retry.Retry, message}
}

// Write applies the object. Live is what the API server itself has, nil for nothing; all are the Releases of its Application, of which
// those own it that list it.
func (s *Stored) Write(ctx context.Context, m *fleet.Member, live *metav1.PartialObjectMetadata, all []Installed) error {
	gvk := s.Object.GroupVersionKind()
	called := fmt.Sprintf("%s %q", gvk.Kind, s.key.Name)
	if live != nil {
		app := s.Object.GetLabels()[shipper.AppLabel]
		switch ours := live.Labels[shipper.AppLabel] == app && live.Labels[shipper.OwnedByLabel] != ""; {
		case !ours:
			return conflict("%s cannot be changed: %s", called, whose(live))
		case live.DeletionTimestamp != nil:
			return waiting("%s is there and is being deleted", called)
		}
		s.Object.SetResourceVersion(live.ResourceVersion)
	}
	s.Object.SetOwnerReferences(s.owners(live, all))
	err := applyset.Apply(ctx, m.Client(), s.Object, client.ForceOwnership)
	if retry.Invalid(err) {
		message := retry.Within(s.from.discreet(&attempted{"changing " + called, err}), maxRefusal)
		if retry.Immutable(err) {
			message += ". Fields of it cannot be changed while it exists: undo this change in the chart or its values; " +
				"or delete it with --cascade=orphan in the cluster, and Shipper creates it again around its Pods"
		}
		return &problem{shipper.ChartError, retry.Recheck, message}
	}
	if err != nil {
		return s.from.discreet(&attempted{"writing " + called, err})
	}
	return nil
}

// owners are the anchors of the Releases that list the object; none if it is kept.
func (s *Stored) owners(live *metav1.PartialObjectMetadata, all []Installed) (out []metav1.OwnerReference) {
	gvk := s.Object.GroupVersionKind()
	entry := item{Kind: gvk.Kind, APIVersion: gvk.GroupVersion().String()}
	if kept(entry, s.Object.GetAnnotations()) || live != nil && kept(entry, live.Annotations) {
		return nil
	}
	for i := range all {
		if all[i].Find(gvk.GroupKind(), s.key) != nil {
			out = append(out, all[i].owner)
		}
	}
	return out
}
