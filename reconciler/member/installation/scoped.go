// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// note remembers an object that has no namespace, unless it is everybody's.
func (i *installer) note(entry item, uid types.UID) {
	if entry.Namespace != "" || isShared(entry) || uid == "" {
		return
	}
	i.scoped = append(i.scoped, shipper.ClusterScopedObject{
		APIVersion: entry.APIVersion, Kind: entry.Kind, Name: entry.Name, UID: uid, Digest: entry.Digest,
	})
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

// removeScoped deletes what a target left that has no namespace, where the anchor that listed it is gone with the namespace
// or was deleted by a user. Nothing in the cluster names the owner of an object any more. So only that very object goes which
// was seen when the anchor was there, as it was written then, and only if no other anchor lists it, by what the API server
// itself says.
func removeScoped(
	ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget, known []shipper.ClusterScopedObject,
) error {
	if len(known) == 0 {
		return nil
	}
	anchors, err := anchorsBut(ctx, m.Live(), it, client.HasLabels{shipper.AppLabel})
	if err != nil {
		return err
	}
	others := inventories(m, anchors)
	var left []item
	for _, o := range known {
		entry := scopedItem(o)
		if contains(others, entry) {
			continue
		}
		there, err := removeOne(ctx, m, it, o)
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
	ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget, o shipper.ClusterScopedObject,
) (there bool, err error) {
	entry := scopedItem(o)
	// The cache is asked first, so that there is one, and its event reports when the object is gone.
	live, err := m.Metadata(ctx, entry.gvk(), entry.key())
	if err == nil {
		live, err = m.LiveMetadata(ctx, entry.gvk(), entry.key())
	}
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return false, nil
	case err != nil:
		return false, err
	case !remains(it, o, live), kept(entry, live.Annotations), ownedByOther(live):
		return false, nil
	case live.DeletionTimestamp != nil:
		return true, nil
	}
	err = m.Client().Delete(ctx, live, client.PropagationPolicy(metav1.DeletePropagationForeground),
		client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion})
	return true, client.IgnoreNotFound(err)
}

// remains reports whether what is there is the object that was seen, and still says that it is the target's.
func remains(it *shipper.InstallationTarget, o shipper.ClusterScopedObject, live *metav1.PartialObjectMetadata) bool {
	return live.UID == o.UID && live.Annotations[shipper.InstalledDigestAnnotation] == o.Digest &&
		live.Labels[shipper.AppLabel] == it.Labels[shipper.AppLabel] && live.Labels[shipper.OwnedByLabel] == it.Name
}
