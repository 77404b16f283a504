// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apply writes want by server-side apply: fields it names become so, fields of others stay. Nothing is written when all
// is so already. want is what is stored afterwards.
func apply(ctx context.Context, c client.Client, want *unstructured.Unstructured) (outcome, error) {
	before, err := current(ctx, c, want)
	if err != nil {
		return "", err
	}
	// The role of a binding cannot be changed. Shipper before 0.10 bound its accounts to cluster-admin under the same
	// name.
	replaced := before != nil && !reflect.DeepEqual(before.Object["roleRef"], want.Object["roleRef"])
	if replaced {
		if err := remove(ctx, c, before); err != nil {
			return "", err
		}
	} else if before != nil {
		rehearsed := want.DeepCopy()
		if err := applyAs(ctx, c, rehearsed, client.DryRunAll); err != nil {
			return "", err
		}
		if reflect.DeepEqual(said(before), said(rehearsed)) {
			want.Object = before.Object
			return unchanged, nil
		}
	}
	if replaced { // nobody knows what was in it when this is interrupted between the two
		ctx = context.WithoutCancel(ctx)
	}
	if err := applyAs(ctx, c, want); err != nil {
		return "", err
	}
	if before == nil {
		return created, nil
	}
	return updated, nil
}

// applyAs applies want as its field owner.
func applyAs(ctx context.Context, c client.Client, want *unstructured.Unstructured, options ...client.ApplyOption) error {
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(want),
		append(options, client.FieldOwner(fieldOwner), client.ForceOwnership)...)
}

// said is what an object says, without what the API server notes of who has written it. Who applies what is there already
// would become one more owner of it, and keep fields there that the other, kubectl or Helm perhaps, takes out later.
func said(o *unstructured.Unstructured) map[string]any {
	out := o.DeepCopy()
	out.SetResourceVersion("")
	out.SetManagedFields(nil)
	return out.Object
}

// ensure creates want unless there is an object of that kind and name, whatever it says.
func ensure(ctx context.Context, c client.Client, want *unstructured.Unstructured) (outcome, error) {
	before, err := current(ctx, c, want)
	if err != nil {
		return "", err
	}
	if before != nil {
		return unchanged, nil
	}
	err = c.Create(ctx, want, client.FieldOwner(fieldOwner))
	if apierrors.IsAlreadyExists(err) {
		return unchanged, nil
	}
	return created, err
}

// current returns what is stored under the kind and name of want, or nil.
func current(
	ctx context.Context, c client.Client, want *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return live, nil
}

// remove deletes exactly the object that was read.
func remove(ctx context.Context, c client.Client, live client.Object) error {
	uid, version := live.GetUID(), live.GetResourceVersion()
	err := c.Delete(ctx, live, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("replacing %s: %w", live.GetName(), err)
	}
	return nil
}
