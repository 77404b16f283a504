// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/applyset"
)

// rehearsal is what the API server would make of an object that is written as released.
type rehearsal struct {
	object *unstructured.Unstructured
	// whole has to be written over the object before it is applied; nil when applying is enough.
	whole *unstructured.Unstructured
	// incomplete says why fields that the chart leaves to the API server were not compared; nil when they were, or are not to be.
	incomplete error
}

// rehearse writes an object as a dry run. Of the production Service, every field that the chart leaves to the API server is set back
// as well: applying alone keeps what others have set.
func (d *drifting) rehearse(ctx context.Context, object, live *unstructured.Unstructured) (rehearsal, error) {
	out := rehearsal{}
	if isTrafficService(object) {
		out.whole = withoutRedirections(object, live)
		out.object = out.whole.DeepCopy()
		err := overlay(ctx, d.member, out.object, client.DryRunAll)
		if !apierrors.IsInvalid(err) {
			return out, err
		}
		out.incomplete = err
	}
	out.object, out.whole = object.DeepCopy(), nil
	err := applyset.Apply(ctx, d.member.Client(), out.object, client.ForceOwnership, client.DryRunAll)
	if apierrors.IsInvalid(err) {
		out.object, out.whole = object.DeepCopy(), object.DeepCopy()
		err = overlay(ctx, d.member, out.object, client.DryRunAll)
	}
	return out, err
}

// restore overlays an object and makes Shipper hold its fields as if it had applied them: otherwise a field that a later Release does
// not have any more would stay.
func (d *drifting) restore(ctx context.Context, whole *unstructured.Unstructured) error {
	if err := overlay(ctx, d.member, whole); err != nil {
		return err
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(whole, sets.New(shipper.FieldOwner), shipper.FieldOwner)
	if err != nil || patch == nil {
		return err
	}
	return d.member.Client().Patch(ctx, whole, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(shipper.FieldOwner))
}

// overlay writes an object over what is there, lists as a whole. Where a user has edited the keys of the elements of a list
// apart, as the port of a Service, applying would add the element that is to be beside theirs, and the API server may refuse
// both together. On return the object is as the API server has it.
func overlay(ctx context.Context, m *fleet.Member, object *unstructured.Unstructured, how ...client.PatchOption) error {
	raw, err := object.MarshalJSON()
	if err != nil {
		return fmt.Errorf("writing %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return m.Client().Patch(ctx, object, client.RawPatch(types.MergePatchType, raw), append(how, client.FieldOwner(shipper.FieldOwner))...)
}
