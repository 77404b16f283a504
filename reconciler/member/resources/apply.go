// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/member/applyset"
	"shipper.dev/shipper/reconciler/member/drift"
)

// maxLastApplied bounds the annotation that ClientSide keeps, in bytes, so that an object has room for others. Larger objects are applied
// by the server.
const maxLastApplied = 256 << 10

// manifest is an object of the content as it is written, but for the marks.
func manifest(content *unstructured.Unstructured) *unstructured.Unstructured {
	out := content.DeepCopy()
	for _, field := range []string{"creationTimestamp", "resourceVersion", "uid", "generation", "managedFields", "ownerReferences"} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(out.Object, "status")
	return out
}

// marks puts Shipper's marks on a manifest. Pod templates get none: with them, Pods would be replaced.
func (p *pass) marks(s *item) *unstructured.Unstructured {
	out := manifest(s.object)
	labels, annotations := out.GetLabels(), out.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[shipper.AppLabel] = p.rules.app
	annotations[shipper.PlacedOwnerAnnotation], annotations[shipper.InstalledDigestAnnotation] = p.rules.owner, s.want.Digest
	delete(annotations, shipper.LastAppliedAnnotation)
	out.SetLabels(labels)
	out.SetAnnotations(annotations)
	return out
}

// write writes an object, and notes its UID.
func (p *pass) write(ctx context.Context, s *item) error {
	object := p.marks(s)
	drift.WithoutScaled(object, s.managed)
	var err error
	if p.how.Type == shipper.ApplyClientSide {
		object, err = p.writeClientSide(ctx, s, object)
	} else {
		err = p.writeServerSide(ctx, s, object)
	}
	if err == nil {
		s.want.UID, s.done = object.GetUID(), true
	}
	return err
}

// writeServerSide takes an object over only as it was read.
func (p *pass) writeServerSide(ctx context.Context, s *item, object *unstructured.Unstructured) error {
	var how []client.ApplyOption
	if p.how.ForceConflicts == nil || *p.how.ForceConflicts {
		how = append(how, client.ForceOwnership)
	}
	if s.action == take {
		object.SetResourceVersion(s.live.ResourceVersion)
	}
	return applyset.Apply(ctx, p.writer(object), object, how...)
}

// writeClientSide merges the manifest applied last, the manifest and the live object.
func (p *pass) writeClientSide(ctx context.Context, s *item, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	raw, err := object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	if len(raw) > maxLastApplied {
		return object, p.writeServerSide(ctx, s, object)
	}
	annotations := object.GetAnnotations()
	annotations[shipper.LastAppliedAnnotation] = string(raw)
	object.SetAnnotations(annotations)
	if s.live == nil {
		return object, p.writer(object).Create(ctx, object, client.FieldOwner(shipper.FieldOwner))
	}
	current := fromContent(map[string]any{})
	current.SetGroupVersionKind(s.want.gvk())
	if err := p.Cluster.Live().Get(ctx, s.want.name(), current); err != nil {
		return nil, err
	}
	if s.action == take && current.GetResourceVersion() != s.live.ResourceVersion {
		gr := schema.GroupResource{Group: s.want.gvk().Group, Resource: s.want.Kind}
		return nil, apierrors.NewConflict(gr, s.want.Name, fmt.Errorf("it was changed since it was compared"))
	}
	before, err := lastApplied(current, s)
	if err != nil {
		return nil, err
	}
	patch, err := threeWay(before, current, object)
	if err != nil {
		return nil, err
	}
	return current, p.writer(object).Patch(ctx, current, patch, client.FieldOwner(shipper.FieldOwner))
}

// lastApplied is the manifest applied last; empty if there is none. A field that a correction leaves alone must be missing here too, or
// the merge would remove it.
func lastApplied(current *unstructured.Unstructured, s *item) ([]byte, error) {
	before := []byte(current.GetAnnotations()[shipper.LastAppliedAnnotation])
	if len(before) == 0 || len(s.managed) == 0 {
		return before, nil
	}
	content := map[string]any{}
	if err := json.Unmarshal(before, &content); err != nil {
		return nil, fmt.Errorf("reading the manifest applied last: %w", err)
	}
	drift.WithoutScaled(fromContent(content), s.managed)
	return json.Marshal(content)
}

// threeWay is the patch of kubectl's client-side apply: lists of built-in kinds are merged by their keys, those of others replaced.
func threeWay(before []byte, current, wanted *unstructured.Unstructured) (client.Patch, error) {
	now, err := json.Marshal(current.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding what is there: %w", err)
	}
	after, err := json.Marshal(wanted.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	typed, err := scheme.Scheme.New(wanted.GroupVersionKind())
	if err != nil {
		if len(before) == 0 {
			before = []byte("{}")
		}
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(before, after, now)
		if err != nil {
			return nil, fmt.Errorf("merging: %w", err)
		}
		return client.RawPatch(types.MergePatchType, patch), nil
	}
	keys, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return nil, fmt.Errorf("reading the merge keys: %w", err)
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(before, after, now, keys, true)
	if err != nil {
		return nil, fmt.Errorf("merging: %w", err)
	}
	return client.RawPatch(types.StrategicMergePatchType, patch), nil
}
