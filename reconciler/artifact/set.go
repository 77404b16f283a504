// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
)

// Kinds of the objects of sets.
const (
	chartSnapshot    = "ChartSnapshot"
	resourceSnapshot = "ResourceSnapshot"
)

// errDeleted means that an object of the name is being deleted, or is about to be. Another is created when it is gone.
var errDeleted = errors.New("it is being deleted")

// errChanged means that an object was changed between reading it and adding an owner.
var errChanged = errors.New("it was changed at the same time")

// set stores one artifact in objects of a kind: a head, and parts that the head owns. The cache of client has their metadata.
type set struct {
	kind   string
	client client.Client
}

// put creates an object of the set, or adds an owner to the one in the cache, unless that owner or one of instead owns it. It sets the
// UID of o. The bytes are sent only to create it, and never cached: writes opt out of what would start a watch of them.
func (s set) put(ctx context.Context, o client.Object, owner metav1.OwnerReference, instead ...types.UID) error {
	is := metadata(s.kind)
	err := s.client.Get(ctx, client.ObjectKeyFromObject(o), is)
	switch {
	case apierrors.IsNotFound(err):
		o.SetOwnerReferences([]metav1.OwnerReference{owner})
		return s.failed(o, s.client.Create(ctx, o, client.FieldOwner(shipper.FieldOwner), client.DisableReadYourWritesConsistency))
	case err != nil:
		return s.failed(o, err)
	case is.DeletionTimestamp != nil:
		return s.failed(o, errDeleted)
	}
	o.SetUID(is.UID)
	if slices.ContainsFunc(append(instead, owner.UID), func(uid types.UID) bool { return isOwner(is, uid) }) {
		return nil
	}
	if owner.Kind == s.kind && len(is.OwnerReferences) > 0 { // the head that it belonged to is gone
		return s.failed(o, errDeleted)
	}
	return s.failed(o, s.addOwner(ctx, is, owner))
}

// failed names the object that could not be stored.
func (s set) failed(o client.Object, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("storing %s %s: %w", s.kind, client.ObjectKeyFromObject(o), err)
}

// addOwner patches an object. Concurrent patches that add other owners do not conflict with it.
func (s set) addOwner(ctx context.Context, is *metav1.PartialObjectMetadata, owner metav1.OwnerReference) error {
	test := jsonpatch.NewOperation("test", "/metadata/uid", is.UID)
	add := jsonpatch.NewOperation("add", "/metadata/ownerReferences/-", owner)
	if len(is.OwnerReferences) == 0 { // the list would replace that of a concurrent patch
		test = jsonpatch.NewOperation("test", "/metadata/resourceVersion", is.ResourceVersion)
		add = jsonpatch.NewOperation("add", "/metadata/ownerReferences", []metav1.OwnerReference{owner})
	}
	patch, err := json.Marshal([]jsonpatch.JsonPatchOperation{test, add})
	if err != nil {
		return err
	}
	err = s.client.Patch(ctx, is, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(shipper.FieldOwner))
	if testFailed(err) {
		return errChanged
	}
	return err
}

// testFailed reports whether an operation of a JSON patch failed: another object has the name, or the last owner was removed. The API
// server answers as to an invalid object, but without causes.
func testFailed(err error) bool {
	var answer apierrors.APIStatus
	return apierrors.IsInvalid(err) && errors.As(err, &answer) &&
		(answer.Status().Details == nil || len(answer.Status().Details.Causes) == 0)
}

// Transient reports whether err is a concurrent write, or something that the cache does not show yet: the next pass may succeed.
func Transient(err error) bool {
	return errors.Is(err, errDeleted) || errors.Is(err, errChanged) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) ||
		apierrors.IsAlreadyExists(err)
}

// metadata is an object of a set without its content: only so are they cached.
func metadata(kind string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(shipper.GroupVersion.WithKind(kind))
	return o
}

// ResourcesKind is that of the objects with the content of resources, whose metadata is cached.
func ResourcesKind() schema.GroupVersionKind { return shipper.GroupVersion.WithKind(resourceSnapshot) }

// ownedBy is a reference to an owner of a kind of Shipper's.
func ownedBy(kind string, o metav1.Object) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: shipper.GroupVersion.String(), Kind: kind, Name: o.GetName(), UID: o.GetUID()}
}

func isOwner(o metav1.Object, uid types.UID) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == uid })
}

// failed is an error that ends when a user mends its cause.
func failed(reason string, cause error, message string) error {
	return &chart.Error{Reason: reason, Message: message, Retry: true, Cause: cause}
}
