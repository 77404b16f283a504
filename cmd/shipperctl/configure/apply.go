// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apply writes want by server-side apply: fields it names become so, fields of others stay. The API server stores
// nothing when all is so already, which shows in the resource version. want is what is stored afterwards.
func apply(ctx context.Context, c client.Client, want *unstructured.Unstructured) (outcome, error) {
	before, err := current(ctx, c, want)
	if err != nil {
		return "", err
	}
	// The role of a binding cannot be changed. Shipper before 0.10 bound its accounts to cluster-admin under the same
	// name.
	if before != nil && !reflect.DeepEqual(before.Object["roleRef"], want.Object["roleRef"]) {
		if err := remove(ctx, c, before); err != nil {
			return "", err
		}
	}
	err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(want),
		client.FieldOwner(fieldOwner), client.ForceOwnership)
	switch {
	case err != nil:
		return "", err
	case before == nil:
		return created, nil
	case before.GetResourceVersion() == want.GetResourceVersion():
		return unchanged, nil
	default:
		return updated, nil
	}
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
