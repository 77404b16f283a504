// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// uninstall removes a target from a cluster: what has no namespace one by one, the rest by deleting the anchor that
// owns it. deleted is true when this pass deleted the anchor. The error is nil once the anchor is gone, which it is
// after all it owns.
func uninstall(ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget) (deleted bool, err error) {
	a, err := readAnchor(ctx, m, it)
	if err != nil || a == nil {
		return false, foreignIsNone(err)
	}
	if a.deleting {
		return false, waiting("waiting until everything that %q owns is gone", shipper.AnchorName(it.Name))
	}
	if err := removeItems(ctx, m, it, ownerless(a.inventory)); err != nil {
		return false, err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: it.Namespace, Name: shipper.AnchorName(it.Name)}}
	err = m.Client().Delete(ctx, cm, client.PropagationPolicy(metav1.DeletePropagationForeground),
		client.Preconditions{UID: &a.uid})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("deleting ConfigMap %s: %w", cm.Name, err)
	}
	return true, waiting("waiting until everything that %q owns is gone", cm.Name)
}

// foreignIsNone takes a ConfigMap that is not an anchor for no anchor: there is nothing of ours to remove.
func foreignIsNone(err error) error {
	if reason, _ := fleet.Classify(err); err != nil && reason == shipper.ObjectConflict {
		return nil
	}
	return err
}

// ownerless are the items that no anchor can own.
func ownerless(items []item) []item {
	var out []item
	for _, entry := range items {
		if entry.Namespace == "" {
			out = append(out, entry)
		}
	}
	return out
}

// removeItems deletes those of the objects that this target wrote last, that no other anchor owns or lists, and
// that are not everybody's.
func removeItems(ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget, items []item) error {
	if len(items) == 0 {
		return nil
	}
	others, err := otherInventories(ctx, m, it)
	if err != nil {
		return err
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
			return err
		}
		if live.Labels[shipper.OwnedByLabel] != it.Name || live.DeletionTimestamp != nil || len(otherAnchors(it, live)) > 0 {
			continue
		}
		err = m.Client().Delete(ctx, live, client.PropagationPolicy(metav1.DeletePropagationBackground),
			client.Preconditions{UID: &live.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s: %w", entry, err)
		}
	}
	return nil
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
