// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// Data keys of anchors, beside that of the target's UID.
const (
	// inventoryKey holds what is installed, as JSON.
	inventoryKey = "Inventory"
	// renderedKey holds the fingerprint of what the inventory was rendered from; empty while it is being installed.
	renderedKey = "RenderedFrom"
)

// anchorSuffix is how the name of every anchor ends.
var anchorSuffix = shipper.AnchorName("")

// item is one installed object.
type item struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Digest     string `json:"digest,omitempty"`
}

// gvk is the item's kind.
func (i item) gvk() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(i.APIVersion, i.Kind)
}

// key is the item's name.
func (i item) key() types.NamespacedName {
	return types.NamespacedName{Namespace: i.Namespace, Name: i.Name}
}

// same tells whether two items are the same object, in whatever version it was written.
func (i item) same(o item) bool {
	return i.gvk().GroupKind() == o.gvk().GroupKind() && i.key() == o.key()
}

// String is for people.
func (i item) String() string {
	return fmt.Sprintf("%s %q", i.Kind, i.Name)
}

// anchor is the ConfigMap that owns a target's objects in one cluster.
type anchor struct {
	uid       types.UID
	targetUID string
	deleting  bool
	rendered  string
	inventory []item
}

// readAnchor returns nil when there is none.
func readAnchor(ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget) (*anchor, error) {
	key := types.NamespacedName{Namespace: it.Namespace, Name: shipper.AnchorName(it.Name)}
	var cm corev1.ConfigMap
	err := m.Client().Get(ctx, key, &cm)
	if apierrors.IsNotFound(err) || it.DeletionTimestamp != nil {
		// One without our label is in no cache. And what is deleted is not decided by old news: the anchor may have become
		// somebody else's.
		err = m.Live().Get(ctx, key, &cm)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", key.Name, err)
	}
	if cm.Data[shipper.AnchorTargetUIDKey] == "" {
		return nil, conflict("ConfigMap %q is not Shipper's, and its name is needed for the anchor", key.Name)
	}
	return anchorOf(&cm), nil
}

// anchorOf reads an anchor. An inventory that cannot be read is none: it is made again.
func anchorOf(cm *corev1.ConfigMap) *anchor {
	out := &anchor{
		uid: cm.UID, targetUID: cm.Data[shipper.AnchorTargetUIDKey],
		deleting: cm.DeletionTimestamp != nil, rendered: cm.Data[renderedKey],
	}
	if err := json.Unmarshal([]byte(cm.Data[inventoryKey]), &out.inventory); err != nil {
		out.inventory, out.rendered = nil, ""
	}
	return out
}

// says tells whether the anchor was written for this target with that list.
func (a *anchor) says(it *shipper.InstallationTarget, inventory []item, rendered string) bool {
	return a != nil && a.targetUID == string(it.UID) && a.rendered == rendered && slices.Equal(a.inventory, inventory)
}

// writeAnchor makes or rewrites the anchor and returns it with its UID.
func writeAnchor(
	ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget, inventory []item, rendered string,
) (*anchor, error) {
	list, err := json.Marshal(inventory)
	if err != nil {
		return nil, fmt.Errorf("writing the inventory: %w", err)
	}
	labels := map[string]any{}
	for k, v := range it.Labels {
		if strings.HasPrefix(k, "shipper-") {
			labels[k] = v
		}
	}
	labels[shipper.OwnedByLabel] = it.Name
	cm := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata": map[string]any{
			"namespace": it.Namespace, "name": shipper.AnchorName(it.Name), "labels": labels,
		},
		"data": map[string]any{
			shipper.AnchorTargetUIDKey: string(it.UID), inventoryKey: string(list), renderedKey: rendered,
		},
	}}
	if err := apply(ctx, m, cm); err != nil {
		return nil, fmt.Errorf("writing ConfigMap %s: %w", cm.GetName(), err)
	}
	return &anchor{uid: cm.GetUID(), targetUID: string(it.UID), rendered: rendered, inventory: inventory}, nil
}

// apply writes an object as we have it. On return the object is as the API server has it.
func apply(ctx context.Context, m *fleet.Member, object *unstructured.Unstructured) error {
	return m.Client().Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
		client.ForceOwnership, client.FieldOwner(shipper.FieldOwner))
}

// reference makes the anchor an owner that is waited for when it is deleted in the foreground.
func (a *anchor) reference(it *shipper.InstallationTarget) metav1.OwnerReference {
	block := true
	return metav1.OwnerReference{
		APIVersion: "v1", Kind: "ConfigMap", Name: shipper.AnchorName(it.Name), UID: a.uid, BlockOwnerDeletion: &block,
	}
}

// owns tells whether the anchor is among an object's owners.
func (a *anchor) owns(live *metav1.PartialObjectMetadata) bool {
	for _, ref := range live.OwnerReferences {
		if a != nil && ref.UID == a.uid {
			return true
		}
	}
	return false
}

// merge is list with those items of more that are not in it yet.
func merge(list, more []item) []item {
	return append(append([]item(nil), list...), without(more, list)...)
}

// without is list without the items that are in other.
func without(list, other []item) []item {
	var out []item
	for _, i := range list {
		if !contains(other, i) {
			out = append(out, i)
		}
	}
	return out
}

func contains(list []item, i item) bool {
	for _, o := range list {
		if o.same(i) {
			return true
		}
	}
	return false
}
