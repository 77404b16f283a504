// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// uninstall removes a target from a cluster: first what it wrote, then the anchor, in the foreground, so that the anchor
// goes after whatever else it owns. What others own too stays. deleted is true when this pass deleted the anchor. The error
// is nil once the anchor is gone.
func uninstall(ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget) (deleted bool, err error) {
	name := shipper.AnchorName(it.Name)
	a, err := readAnchor(ctx, m, it)
	if err != nil || a == nil {
		return false, foreignIsNone(err)
	}
	if a.deleting {
		return false, waiting("waiting until everything that %q owns is gone", name)
	}
	left, err := removeItems(ctx, m, it, a.inventory)
	if err != nil {
		return false, err
	}
	if len(left) > 0 {
		return false, waiting("waiting until these are gone: %s", list(left))
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: it.Namespace, Name: name}}
	err = m.Client().Delete(ctx, cm, client.PropagationPolicy(metav1.DeletePropagationForeground),
		client.Preconditions{UID: &a.uid})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("deleting ConfigMap %s: %w", name, err)
	}
	return true, waiting("waiting until everything that %q owns is gone", name)
}

// list names items for people.
func list(items []item) string {
	names := make([]string, 0, len(items))
	for _, entry := range items {
		names = append(names, entry.String())
	}
	return strings.Join(names, ", ")
}

// foreignIsNone takes a ConfigMap that is not an anchor for no anchor: there is nothing of ours to remove.
func foreignIsNone(err error) error {
	if reason, _ := fleet.Classify(err); err != nil && reason == shipper.ObjectConflict {
		return nil
	}
	return err
}

// removeItems deletes those of the objects that this target wrote last, that no other anchor owns or lists, and
// that are not everybody's. left are those of them that are still there, because what they own goes first.
func removeItems(
	ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget, items []item,
) (left []item, err error) {
	if len(items) == 0 {
		return nil, nil
	}
	others, err := otherInventories(ctx, m, it)
	if err != nil {
		return nil, err
	}
	for _, entry := range items {
		if everybodys(entry) || contains(others, entry) {
			continue
		}
		live, err := m.Metadata(ctx, entry.gvk(), entry.key())
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if live.Labels[shipper.OwnedByLabel] != it.Name || len(otherAnchors(it, live)) > 0 {
			continue
		}
		left = append(left, entry)
		if live.DeletionTimestamp != nil {
			continue
		}
		err = m.Client().Delete(ctx, live, client.PropagationPolicy(metav1.DeletePropagationForeground),
			client.Preconditions{UID: &live.UID})
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("deleting %s: %w", entry, err)
		}
	}
	return left, nil
}

// otherInventories are the objects that other anchors in the cluster list.
func otherInventories(ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget) ([]item, error) {
	var anchors corev1.ConfigMapList
	if err := m.Client().List(ctx, &anchors); err != nil {
		return nil, fmt.Errorf("listing anchors: %w", err)
	}
	var out []item
	for i := range anchors.Items {
		cm := &anchors.Items[i]
		own := cm.Namespace == it.Namespace && cm.Name == shipper.AnchorName(it.Name)
		if !own && cm.DeletionTimestamp == nil && cm.Data[shipper.AnchorTargetUIDKey] != "" {
			out = append(out, anchorOf(cm).inventory...)
		}
	}
	return out, nil
}
