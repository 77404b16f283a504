// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// write applies an object whole.
func (i *installer) write(ctx context.Context, s step) error {
	object := s.content.DeepCopy()
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(object.Object, "status")
	object.SetNamespace(s.item.Namespace)
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[shipper.InstalledDigestAnnotation] = s.digest
	object.SetAnnotations(annotations)
	if s.item.Namespace != "" {
		object.SetOwnerReferences(owners(i.it, s.live, i.anchor.reference(i.it)))
	}
	if s.item.gvk() == appsv1.SchemeGroupVersion.WithKind("Deployment") {
		if err := i.setReplicas(ctx, s, object); err != nil {
			return err
		}
	}
	return apply(ctx, i.member, object)
}

// setReplicas makes a new Deployment start with no Pods, and leaves the number alone in one that has Pods: that is
// capacity's. A Deployment that still has none must be told so again, because a field that is no longer applied
// falls back to its default. The version it was read at makes sure that it has not been scaled meanwhile.
func (i *installer) setReplicas(ctx context.Context, s step, object *unstructured.Unstructured) error {
	unstructured.RemoveNestedField(object.Object, "spec", "replicas")
	none := s.live == nil
	if s.live != nil {
		var live appsv1.Deployment
		if err := i.member.Live().Get(ctx, s.item.key(), &live); err != nil {
			return fmt.Errorf("reading its replicas: %w", err)
		}
		object.SetResourceVersion(live.ResourceVersion)
		none = live.Spec.Replicas != nil && *live.Spec.Replicas == 0
	}
	if !none {
		return nil
	}
	return unstructured.SetNestedField(object.Object, int64(0), "spec", "replicas")
}

// mark sets nothing but the digest and the owner.
func (i *installer) mark(ctx context.Context, s step) error {
	metadata := map[string]any{
		"resourceVersion": s.live.ResourceVersion,
		"annotations":     map[string]any{shipper.InstalledDigestAnnotation: s.digest},
	}
	if s.item.Namespace != "" && !i.anchor.owns(s.live) {
		metadata["ownerReferences"] = withOwner(s.live.OwnerReferences, i.anchor.reference(i.it))
	}
	raw, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("writing the mark: %w", err)
	}
	patch := client.RawPatch(types.MergePatchType, raw)
	return i.member.Client().Patch(ctx, s.live.DeepCopy(), patch, client.FieldOwner(shipper.FieldOwner))
}

// withOwner is all references there are, but for one to a former anchor of the same name, and ours.
func withOwner(refs []metav1.OwnerReference, own metav1.OwnerReference) []metav1.OwnerReference {
	var out []metav1.OwnerReference
	for _, ref := range refs {
		if ref.Kind != own.Kind || ref.Name != own.Name {
			out = append(out, ref)
		}
	}
	return append(out, own)
}
