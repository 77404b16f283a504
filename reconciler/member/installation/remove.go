// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/retry"
)

// uninstall removes a target from a cluster: first what it wrote, then the anchor, in the foreground, so that the anchor
// goes after whatever else it owns. What others own too stays. The error is nil once the anchor is gone, with what is listed
// without a namespace, or the anchor has another owner.
func uninstall(ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget) ([]report.Event, error) {
	name := shipper.AnchorName(it.Name)
	a, err := liveAnchor(ctx, m, it)
	if err = foreignIsNone(err); err != nil {
		return nil, err
	}
	if a == nil {
		return nil, removeListed(ctx, m, it)
	}
	if !a.goesWith(it) {
		return []report.Event{leftAlone(m, a, name)}, forgetList(ctx, m, it)
	}
	if a.deleting {
		return nil, waiting("waiting until everything that %q owns is gone", name)
	}
	remaining, err := removeItems(ctx, m, it, a.inventory)
	if err != nil {
		return nil, err
	}
	if len(remaining) > 0 {
		return nil, waiting("waiting until these are gone: %s", list(it, remaining))
	}
	if err := disown(ctx, m, it, a.inventory); err != nil {
		return nil, err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: it.Namespace, Name: name}}
	err = m.Client().Delete(ctx, cm, client.PropagationPolicy(metav1.DeletePropagationForeground),
		client.Preconditions{UID: &a.uid, ResourceVersion: &a.resourceVersion})
	if apierrors.IsNotFound(err) {
		return nil, removeListed(ctx, m, it)
	}
	if err != nil {
		return nil, fmt.Errorf("deleting ConfigMap %s: %w", name, err)
	}
	return []report.Event{anchorDeleted(m.Name, name)}, waiting("waiting until everything that %q owns is gone", name)
}

// list names items of a target for people, or counts them where their names may hold what a Secret held.
func list(it *shipper.InstallationTarget, items []item) string {
	if sourcesOf(it).secret() {
		return fmt.Sprintf("%d objects", len(items))
	}
	names := make([]string, 0, len(items))
	for _, entry := range items {
		names = append(names, entry.String())
	}
	return strings.Join(names, ", ")
}

// foreignIsNone takes a ConfigMap that is not an anchor for no anchor: there is nothing of ours to remove.
func foreignIsNone(err error) error {
	if reason, _ := retry.ClassifyInCluster(err); err != nil && reason == shipper.ObjectConflict {
		return nil
	}
	return err
}

// removeItems deletes those of the objects that go with this target, that no other anchor lists, and that are not
// everybody's. left are those of them that are still there, because what they own goes first.
func removeItems(
	ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget, items []item,
) (left []item, err error) {
	others := sync.OnceValues(func() ([]item, error) { return remainingInventories(ctx, m, it, items) })
	for _, entry := range items {
		if isShared(entry) {
			continue
		}
		live, err := leaver(ctx, m, it, entry)
		if err != nil {
			return nil, err
		}
		if live == nil {
			continue
		}
		listed, err := others()
		if err != nil {
			return nil, err
		}
		if contains(listed, entry) {
			continue
		}
		left = append(left, entry)
		if live.DeletionTimestamp != nil {
			continue
		}
		// An object that was taken over since it was read stays.
		err = m.Client().Delete(ctx, live, client.PropagationPolicy(metav1.DeletePropagationForeground),
			client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("deleting %s: %w", entry, err)
		}
	}
	return left, nil
}

// leaver is an object as the API server has it, if it is there and goes with the target.
func leaver(
	ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget, entry item,
) (*metav1.PartialObjectMetadata, error) {
	// The cache is asked first, so that there is one, and its event reports when the object is gone.
	live, err := m.Metadata(ctx, entry.gvk(), entry.key())
	if err == nil && goes(it, entry, live) {
		live, err = m.LiveMetadata(ctx, entry.gvk(), entry.key())
	}
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, err
	case !goes(it, entry, live):
		return nil, nil
	}
	return live, nil
}

// inventories are the objects that anchors list which are not going.
func inventories(m *fleet.Member, anchors []corev1.ConfigMap) []item {
	var out []item
	for i := range anchors {
		if cm := &anchors[i]; cm.DeletionTimestamp == nil {
			out = append(out, anchorOf(m, cm).inventory...)
		}
	}
	return out
}

// otherAnchorsIn are all anchors in a cluster but the target's, by name.
func otherAnchorsIn(ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget) ([]corev1.ConfigMap, error) {
	return anchorsBut(ctx, m.Client(), it)
}

// anchorsBut is otherAnchorsIn for a given anchor.
func anchorsBut(
	ctx context.Context, reader client.Reader, it *shipper.InstallationTarget, of ...client.ListOption,
) ([]corev1.ConfigMap, error) {
	var list corev1.ConfigMapList
	if err := reader.List(ctx, &list, of...); err != nil {
		return nil, fmt.Errorf("listing anchors: %w", err)
	}
	out := slices.DeleteFunc(list.Items, func(cm corev1.ConfigMap) bool {
		return !fleet.IsAnchor(&cm) || cm.Namespace == it.Namespace && cm.Name == shipper.AnchorName(it.Name)
	})
	slices.SortFunc(out, func(a, b corev1.ConfigMap) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}
