// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/reconciler/fleet"
)

// kept reports whether an object outlives the target: a PersistentVolumeClaim does, for what is in it cannot be made again, and
// objects that the chart, or a user of the cluster, annotated so. No anchor owns such an object, or it would be collected with it.
func kept(entry item, annotations map[string]string) bool {
	gk := entry.gvk().GroupKind()
	return gk.Group == "" && gk.Kind == "PersistentVolumeClaim" || render.Keeps(annotations)
}

// keeps reports whether what is to be written outlives the target, by the chart or by what is there.
func (s step) keeps() bool {
	return kept(s.item, s.content.GetAnnotations()) || s.live != nil && kept(s.item, s.live.Annotations)
}

// ownedByOther reports whether an object has an owner that is no anchor. That owner decides when it is deleted.
func ownedByOther(live *metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(live.OwnerReferences, func(ref metav1.OwnerReference) bool { return !isAnchor(ref) })
}

func isAnchor(ref metav1.OwnerReference) bool {
	return ref.Kind == "ConfigMap" && strings.HasSuffix(ref.Name, anchorSuffix)
}

// disown removes the target's anchor from the owners of objects that stay, so that the garbage collector does not delete them with it:
// objects that are kept, since the original makes the anchor own everything and an object may be annotated at any time; and objects that
// another anchor of the Application lists and its target has not written yet, which that anchor then owns.
func disown(ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget, items []item) error {
	others := sync.OnceValues(func() ([]corev1.ConfigMap, error) {
		of := client.MatchingLabels{shipper.AppLabel: it.Labels[shipper.AppLabel]}
		return anchorsBut(ctx, m.Live(), it, client.InNamespace(it.Namespace), of)
	})
	for _, entry := range items {
		if entry.Namespace == "" {
			continue
		}
		live, err := m.LiveMetadata(ctx, entry.gvk(), entry.key())
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return err
		}
		refs := withoutOwner(live.OwnerReferences, shipper.AnchorName(it.Name))
		if len(refs) == len(live.OwnerReferences) {
			continue
		}
		if !kept(entry, live.Annotations) {
			if len(refs) > 0 {
				continue // it stays with its other owners
			}
			anchors, err := others()
			if err != nil {
				return err
			}
			if refs = newOwner(m, anchors, entry); len(refs) == 0 {
				continue
			}
		}
		if _, err := setOwners(ctx, m, live, refs); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("keeping %s: %w", entry, err)
		}
	}
	return nil
}

// newOwner is a reference to the first of some anchors that lists an object and is not going; none when none does.
func newOwner(m *fleet.Member, anchors []corev1.ConfigMap, entry item) []metav1.OwnerReference {
	for i := range anchors {
		cm := &anchors[i]
		if a := anchorOf(m, cm); !a.deleting && a.claim == nil && contains(a.inventory, entry) {
			return []metav1.OwnerReference{a.reference(cm.Name)}
		}
	}
	return nil
}

// withoutAnchor takes the target's anchor out of the owners of an object, as it was read.
func withoutAnchor(
	ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget, live *metav1.PartialObjectMetadata,
) error {
	refs := withoutOwner(live.OwnerReferences, shipper.AnchorName(it.Name))
	if len(refs) == len(live.OwnerReferences) {
		return nil
	}
	_, err := setOwners(ctx, m, live, refs)
	return err
}

// setOwners gives an object other owners, as it was read, and returns it as it is then.
func setOwners(
	ctx context.Context, m *fleet.Member, live *metav1.PartialObjectMetadata, refs []metav1.OwnerReference,
) (*metav1.PartialObjectMetadata, error) {
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": live.ResourceVersion, "ownerReferences": refs,
	}})
	if err != nil {
		return nil, fmt.Errorf("writing its owners: %w", err)
	}
	out := live.DeepCopy()
	return out, m.Client().Patch(ctx, out, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(shipper.FieldOwner))
}

// withoutOwner is references without those to an anchor of a name.
func withoutOwner(refs []metav1.OwnerReference, name string) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(refs), func(ref metav1.OwnerReference) bool {
		return ref.Kind == "ConfigMap" && ref.Name == name
	})
}

// goes reports whether an object goes with a target that no other anchor lists it for: it is what the target wrote last, or,
// where no anchor can own it, what a Release of the same Application did that is gone; it is not kept, and no other owner has
// it.
func goes(it *shipper.InstallationTarget, entry item, live *metav1.PartialObjectMetadata) bool {
	if kept(entry, live.Annotations) || ownedByOther(live) || len(otherAnchors(it, live)) > 0 {
		return false
	}
	by, app := live.Labels[shipper.OwnedByLabel], it.Labels[shipper.AppLabel]
	return by == it.Name || entry.Namespace == "" && by != "" && app != "" && live.Labels[shipper.AppLabel] == app
}

// remainingInventories are the objects that other anchors list, by what the API server itself says: one that was written a
// moment ago may be about to take over what is to be removed.
func remainingInventories(
	ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget, items []item,
) ([]item, error) {
	of := []client.ListOption{client.HasLabels{shipper.AppLabel}}
	if !slices.ContainsFunc(items, func(i item) bool { return i.Namespace == "" }) {
		of = append(of, client.InNamespace(it.Namespace))
	}
	others, err := anchorsBut(ctx, m.Live(), it, of...)
	return inventories(m, others), err
}
