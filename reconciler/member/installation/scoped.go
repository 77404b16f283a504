// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/applyset"
)

// isListed reports whether the list in shipper-system has an object: it has no namespace, and may be deleted.
func isListed(i item) bool { return i.Namespace == "" && !isShared(i) }

// scopedObject is an item as the list and the status have it.
func (i item) scopedObject(uid types.UID) shipper.ClusterScopedObject {
	return shipper.ClusterScopedObject{APIVersion: i.APIVersion, Kind: i.Kind, Name: i.Name, UID: uid, Digest: i.Digest}
}

// note remembers an object that has no namespace, unless it is everybody's.
func (i *installer) note(entry item, uid types.UID) {
	if isListed(entry) && uid != "" {
		i.scoped = append(i.scoped, entry.scopedObject(uid))
	}
}

// listPending lists, before they are written, the objects of steps without a namespace. What the list has besides stays until all is
// written.
func (i *installer) listPending(ctx context.Context, steps []step) error {
	return i.changeList(ctx, func(listed []scopedEntry) []scopedEntry {
		var out []scopedEntry
		var items []item
		for _, s := range steps {
			switch {
			case !isListed(s.item):
				continue
			case s.action == keep:
				out = append(out, scopedEntry{ClusterScopedObject: s.item.scopedObject(uidOf(s.live))})
			default:
				out = append(out, scopedEntry{ClusterScopedObject: s.item.scopedObject(""), Pending: true})
			}
			items = append(items, s.item)
		}
		for _, e := range listed {
			if !contains(items, scopedItem(e.ClusterScopedObject)) {
				out = append(out, e)
			}
		}
		return out
	})
}

// listScoped lists what this pass has found or written, which is all.
func (i *installer) listScoped(ctx context.Context) error {
	return i.changeList(ctx, func([]scopedEntry) []scopedEntry { return entriesOf(i.scoped) })
}

// reported are the objects without a namespace as the status names them.
func (i *installer) reported() []shipper.ClusterScopedObject {
	var known []shipper.ClusterScopedObject
	for _, e := range i.listed.all() {
		if !e.Pending {
			known = append(known, e.ClusterScopedObject)
		}
	}
	return mergeScoped(known, i.scoped)
}

// uidOf is that of what is there, if anything is.
func uidOf(live *metav1.PartialObjectMetadata) types.UID {
	if live == nil {
		return ""
	}
	return live.UID
}

// scopedItem is what an anchor would have listed.
func scopedItem(o shipper.ClusterScopedObject) item {
	return item{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, Digest: o.Digest}
}

// mergeScoped is what was known, as a pass that did not come to its end has found it.
func mergeScoped(known, found []shipper.ClusterScopedObject) []shipper.ClusterScopedObject {
	var items []item
	for _, o := range found {
		items = append(items, scopedItem(o))
	}
	var out []shipper.ClusterScopedObject
	for _, o := range known {
		if !contains(items, scopedItem(o)) {
			out = append(out, o)
		}
	}
	return append(out, found...)
}

// removeListed deletes what a target left that has no namespace, where its anchor is gone with the namespace or was deleted by a user,
// and then the list of it. Versions before the list have it in the status alone.
func removeListed(ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget) error {
	listed, err := readList(ctx, m.Live(), m, it)
	if err != nil {
		return err
	}
	entries := listed.all()
	if len(entries) == 0 {
		entries = entriesOf(find(it.Status.Clusters, m.Name).ClusterScoped)
	}
	if err := removeScoped(ctx, m, it, entries); err != nil {
		return err
	}
	return deleteList(ctx, m, it, listed)
}

// removeScoped deletes the objects of a list whose target has no anchor any more. Only that very object goes which was written, as it was
// written then, and only if no other anchor lists it, nor another Application, by what the API server itself says.
func removeScoped(ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget, entries []scopedEntry) error {
	if len(entries) == 0 {
		return nil
	}
	anchors, err := anchorsBut(ctx, m.Live(), it, client.HasLabels{shipper.AppLabel})
	if err != nil {
		return err
	}
	others, siblings := listedByOthers(it, anchors)
	others = append(others, inventories(m, anchors)...)
	var left []item
	for _, e := range entries {
		entry := scopedItem(e.ClusterScopedObject)
		if contains(others, entry) {
			continue
		}
		there, err := removeOne(ctx, m, it, e, siblings)
		if err != nil {
			return fmt.Errorf("deleting %s: %w", entry, err)
		}
		if there {
			left = append(left, entry)
		}
	}
	if len(left) > 0 {
		return waiting("waiting until these are gone: %s", list(it, left))
	}
	return nil
}

// removeOne deletes an object if it is still the one that was seen, and reports whether it is there.
func removeOne(
	ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget, e scopedEntry, siblings map[string]bool,
) (there bool, err error) {
	entry := scopedItem(e.ClusterScopedObject)
	// A pending object of a kind that its chart defines may turn out to have a namespace: the anchor owned it.
	if mapping, err := m.Mapping(entry.gvk()); err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return false, nil
	}
	may := func(cached *metav1.PartialObjectMetadata) bool { return cached != nil }
	return applyset.Remove(ctx, m, entry.gvk(), entry.key(), may, func(live *metav1.PartialObjectMetadata) (bool, error) {
		return remains(it, e, live, siblings) && !kept(entry, live.Annotations) && !ownedByOther(live), nil
	})
}

// remains reports whether what is there is the object that was written, and still says that it is the target's, or that of another target
// of the Application that has no list any more. Of a pending entry neither UID nor digest is known: the process may have been killed
// before or after the write.
func remains(it *shipper.InstallationTarget, e scopedEntry, live *metav1.PartialObjectMetadata, siblings map[string]bool) bool {
	by, same := live.Labels[shipper.OwnedByLabel], live.UID == e.UID
	switch {
	case live.Labels[shipper.AppLabel] != it.Labels[shipper.AppLabel] || by == "":
		return false
	case by != it.Name:
		return same && !siblings[by]
	}
	return e.Pending || same && live.Annotations[shipper.InstalledDigestAnnotation] == e.Digest
}
