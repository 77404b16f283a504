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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/member/applyset"
	"shipper.dev/shipper/reconciler/retry"
)

// afterRemoval does what is left to do when what an anchor lists is gone, and returns the anchor as it is then. The anchor stays until that
// is without an error.
type afterRemoval func(context.Context, *anchor) (*anchor, error)

// uninstall removes a target from a cluster, and in the end what is stored of it. The error is nil once that is done. If keepUsed is true,
// what Pods in place use goes after them.
func uninstall(
	ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget, keepUsed bool, after afterRemoval,
) ([]report.Event, error) {
	events, err := removeInstalled(ctx, m, it, keepUsed, after)
	if err == nil {
		err = forgetStored(ctx, m, it)
	}
	return events, err
}

// removeInstalled removes first what a target wrote, then the anchor, in the foreground, so that the anchor goes after whatever
// else it owns. What others own too stays. The error is nil once the anchor is gone, with what is listed without a namespace, or
// the anchor has another owner.
func removeInstalled(
	ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget, keepUsed bool, after afterRemoval,
) ([]report.Event, error) {
	key := anchorKey(it)
	a, err := liveAnchor(ctx, m, it)
	if err = foreignIsNone(err); err != nil {
		return nil, err
	}
	if a == nil {
		return nil, removeListed(ctx, m, it)
	}
	if !a.goesWith(it) {
		return []report.Event{leftAlone(m, a, key.Name)}, forgetList(ctx, m, it)
	}
	if a.deleting && !a.held() {
		return nil, waiting("waiting until everything that %q owns is gone", key.Name)
	}
	var used []item
	if keepUsed {
		if used, err = stillUsed(ctx, m, it, a); err != nil {
			return nil, err
		}
	}
	remaining, err := removeItems(ctx, m, it, without(a.inventory, used))
	if err != nil {
		return nil, err
	}
	if len(used) > 0 {
		return nil, &problem{shipper.InProgress, retry.Retry, "waiting until Pods in place do not use these any more: " + list(it, used)}
	}
	if len(remaining) > 0 {
		return nil, waiting("waiting until these are gone: %s", list(it, remaining))
	}
	if a, err = after(ctx, a); err != nil {
		return nil, err
	}
	if err := disown(ctx, m, it, a.inventory); err != nil {
		return nil, err
	}
	if a, err = a.release(ctx, m, key); err == nil && !a.deleting {
		err = applyset.DeleteList(ctx, m.Client(), key, a.Version, applyset.Foreground)
	}
	if apierrors.IsNotFound(err) {
		return nil, removeListed(ctx, m, it)
	}
	if err != nil {
		return nil, err
	}
	return []report.Event{anchorDeleted(m.Name, key.Name)}, waiting("waiting until everything that %q owns is gone", key.Name)
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
		may := func(cached *metav1.PartialObjectMetadata) bool { return cached != nil && goes(it, entry, cached) }
		there, err := applyset.Remove(ctx, m, entry.gvk(), entry.key(), may, func(live *metav1.PartialObjectMetadata) (bool, error) {
			if !goes(it, entry, live) {
				return false, nil
			}
			listed, err := others()
			return !contains(listed, entry), err
		})
		if err != nil {
			return nil, granted(m.Name, it, list(it, []item{entry}), fmt.Errorf("deleting %s: %w", entry, err))
		}
		if there {
			left = append(left, entry)
		}
	}
	return left, nil
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
