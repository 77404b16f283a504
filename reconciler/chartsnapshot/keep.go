// SPDX-License-Identifier: Apache-2.0

package chartsnapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"gomodules.xyz/jsonpatch/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// errGoing means that what is there is being deleted; when it is gone, another is made.
var errGoing = errors.New("it is being deleted")

// errOvertaken means that what is there is not as it was when an owner was to be noted.
var errOvertaken = errors.New("the snapshot was changed at the same time")

// transient reports whether a failure is only a concurrent write, or one that the cache does not show yet.
func transient(err error) bool {
	return errors.Is(err, errGoing) || errors.Is(err, errOvertaken) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) ||
		apierrors.IsAlreadyExists(err)
}

// isKept reports whether the cache has every snapshot of a Release's chart, with this Release among the owners.
func (r *Reconciler) isKept(ctx context.Context, rel *shipper.Release) (bool, error) {
	digest := digestOf(rel)
	if digest == "" {
		return false, nil
	}
	head := kept()
	key := client.ObjectKey{Namespace: rel.Namespace, Name: shipper.ChartSnapshotName(digest)}
	if err := r.client.Get(ctx, key, head); err != nil || !owns(head, ownedBy(rel)) {
		return false, client.IgnoreNotFound(err)
	}
	count, err := strconv.ParseInt(head.Labels[shipper.ChartPartsLabel], 10, 32)
	if err != nil {
		return false, nil // the label was removed: ask the API server
	}
	for n := int32(1); n <= int32(count); n++ {
		part := kept()
		key.Name = shipper.ChartSnapshotPartName(digest, n)
		if err := r.client.Get(ctx, key, part); err != nil || !owns(part, ownedByHead(head)) {
			return false, client.IgnoreNotFound(err)
		}
	}
	return true, nil
}

// keep writes what is missing: first the object that the garbage collector counts Releases by, then the bytes.
func (r *Reconciler) keep(ctx context.Context, rel *shipper.Release) error {
	loaded, err := r.charts.Load(ctx, rel.Namespace, rel.Spec.Environment.Chart, digestOf(rel))
	if err != nil {
		return err
	}
	if digestOf(rel) == "" {
		if err := r.pin(ctx, rel, loaded.Digest()); err != nil {
			return err
		}
	}
	if size := len(loaded.Archive()); size > maxKept {
		return tooLarge(size)
	}
	head := heading(rel, loaded)
	if err := r.write(ctx, head, ownedBy(rel)); err != nil {
		return err
	}
	for _, part := range parts(head, loaded.Archive()) {
		if err := r.write(ctx, part, ownedByHead(head)); err != nil {
			return err
		}
	}
	return nil
}

// pin notes on a Release, whose repository gave no digest, which archive it is made of.
func (r *Reconciler) pin(ctx context.Context, rel *shipper.Release, digest string) error {
	was := rel.DeepCopy()
	metav1.SetMetaDataAnnotation(&rel.ObjectMeta, shipper.ReleaseChartDigestAnnotation, digest)
	err := r.client.Patch(ctx, rel, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(shipper.FieldOwner))
	if err != nil {
		return fmt.Errorf("pinning it to the digest of its chart: %w", err)
	}
	return nil
}

// write makes a ChartSnapshot or, where it is there, gives it to one owner more. Into o it reads what is there then. Whether it is
// exists is read from the cache, so that the bytes of a chart are not sent in vain. They are not cached either: writes opt out of what
// would start a watch of them.
func (r *Reconciler) write(ctx context.Context, o *shipper.ChartSnapshot, owner metav1.OwnerReference) error {
	there := kept()
	switch err := r.client.Get(ctx, client.ObjectKeyFromObject(o), there); {
	case apierrors.IsNotFound(err):
		return wrap(r.client.Create(ctx, o, client.FieldOwner(shipper.FieldOwner), client.DisableReadYourWritesConsistency), "making", o)
	case err != nil:
		return wrap(err, "reading", o)
	}
	if there.DeletionTimestamp != nil {
		return wrap(errGoing, "using", o)
	}
	if owns(there, owner) {
		o.UID = there.UID
		return nil
	}
	patch, err := give(there, owner)
	if err != nil {
		return err
	}
	err = r.client.Patch(ctx, o, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(shipper.FieldOwner),
		client.DisableReadYourWritesConsistency)
	if unsuited(err) {
		err = errOvertaken
	}
	return wrap(err, "noting an owner of", o)
}

// unsuited reports whether a patch does not suit what is there: it is another of that name, or its last owner was taken off. The API server
// says so as it says that what would come of a patch is invalid, but names no field.
func unsuited(err error) bool {
	var answer apierrors.APIStatus
	return apierrors.IsInvalid(err) && errors.As(err, &answer) &&
		(answer.Status().Details == nil || len(answer.Status().Details.Causes) == 0)
}

// give is the patch that adds an owner. Concurrent patches that add others do not conflict with it.
func give(o *metav1.PartialObjectMetadata, owner metav1.OwnerReference) ([]byte, error) {
	at := jsonpatch.NewOperation("test", "/metadata/uid", o.UID)
	add := jsonpatch.NewOperation("add", "/metadata/ownerReferences/-", owner)
	if len(o.OwnerReferences) == 0 { // the first one's list would take the place of another's
		at = jsonpatch.NewOperation("test", "/metadata/resourceVersion", o.ResourceVersion)
		add = jsonpatch.NewOperation("add", "/metadata/ownerReferences", []metav1.OwnerReference{owner})
	}
	return json.Marshal([]jsonpatch.JsonPatchOperation{at, add})
}

// wrap says what was being done with which ChartSnapshot.
func wrap(err error, doing string, o client.Object) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s ChartSnapshot %s: %w", doing, client.ObjectKeyFromObject(o), err)
}
