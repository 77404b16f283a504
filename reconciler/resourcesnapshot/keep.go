// SPDX-License-Identifier: Apache-2.0

package resourcesnapshot

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/chart/values"
)

// ErrPassing means that an object of the name is being deleted, or is about to be. The same succeeds later.
var ErrPassing = errors.New("an object of that name is being deleted")

// Keep stores content in the namespace of an Application, for the Application until a Release has the digest. What exists stays.
// It creates the head first: the garbage collector then deletes an incomplete set with it. An error that wraps ErrPassing passes.
func (s *Snapshots) Keep(ctx context.Context, app *shipper.Application, rels []*shipper.Release, parts []objects.Part) error {
	snapshots := snapshotsOf(app.Namespace, parts)
	secrets, err := secretsOf(app.Namespace, parts)
	if err != nil {
		return err
	}
	head := snapshots[0]
	if err := s.keepHead(ctx, app, rels, head); err != nil {
		return wrap(err, "ResourceSnapshot", head)
	}
	owner := headReference(head)
	for _, part := range snapshots[1:] {
		part.OwnerReferences = []metav1.OwnerReference{owner}
		if err := s.keepPart(ctx, part); err != nil {
			return wrap(err, "ResourceSnapshot", part)
		}
	}
	for _, secret := range secrets {
		secret.OwnerReferences = []metav1.OwnerReference{owner}
		if err := s.keepSecret(ctx, secret); err != nil {
			return wrap(err, "Secret", secret)
		}
	}
	return nil
}

// keepHead creates the head, or adds the Application to its owners if none of its Releases is there. It sets the UID of head.
func (s *Snapshots) keepHead(
	ctx context.Context, app *shipper.Application, rels []*shipper.Release, head *shipper.ResourceSnapshot,
) error {
	head.OwnerReferences = []metav1.OwnerReference{applicationReference(app)}
	there := metadata()
	switch err := s.client.Get(ctx, client.ObjectKeyFromObject(head), there); {
	case apierrors.IsNotFound(err):
		return s.create(ctx, head)
	case err != nil:
		return err
	case there.DeletionTimestamp != nil:
		return ErrPassing
	}
	head.UID = there.UID
	if isOwner(there, app.UID) {
		return nil
	}
	for _, rel := range rels {
		if isOwner(there, rel.UID) {
			return nil
		}
	}
	return s.setOwners(ctx, there, append(there.DeepCopy().OwnerReferences, applicationReference(app)))
}

// keepPart creates a further ResourceSnapshot unless the cache has it.
func (s *Snapshots) keepPart(ctx context.Context, part *shipper.ResourceSnapshot) error {
	there := metadata()
	err := s.client.Get(ctx, client.ObjectKeyFromObject(part), there)
	if apierrors.IsNotFound(err) {
		return s.create(ctx, part)
	}
	return isSettled(there, part, err)
}

// create creates a ResourceSnapshot. If one exists that the cache lacks, its spec must be equal. It sets the UID of o.
func (s *Snapshots) create(ctx context.Context, o *shipper.ResourceSnapshot) error {
	want := o.DeepCopy()
	err := s.client.Create(ctx, o, client.FieldOwner(shipper.FieldOwner), client.DisableReadYourWritesConsistency)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	there := &shipper.ResourceSnapshot{}
	if err := s.reader.Get(ctx, client.ObjectKeyFromObject(o), there); err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(there.Spec, want.Spec) {
		return failed(nil, "ResourceSnapshot %s/%s exists and has other content than its name says: delete it", o.Namespace, o.Name)
	}
	o.UID = there.UID
	return isSettled(there, want, nil)
}

// keepSecret creates a Secret unless it exists. Secrets are not cached.
func (s *Snapshots) keepSecret(ctx context.Context, secret *corev1.Secret) error {
	there := &corev1.Secret{}
	err := s.reader.Get(ctx, client.ObjectKeyFromObject(secret), there)
	switch {
	case apierrors.IsNotFound(err):
		err = s.client.Create(ctx, secret, client.FieldOwner(shipper.FieldOwner), client.DisableReadYourWritesConsistency)
	case err == nil && (there.Type != secret.Type || !equality.Semantic.DeepEqual(there.Data, secret.Data)):
		return failed(nil, "Secret %s/%s exists and has other content than its name says: delete it", secret.Namespace, secret.Name)
	case err == nil:
		return isSettled(there, secret, nil)
	}
	if apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return failed(err, "Shipper may not keep the selected Secrets in Secret %s/%s; %s", secret.Namespace, secret.Name,
			values.PermissionHint(secret.Namespace))
	}
	return err
}

// isSettled returns err, or ErrPassing if the object is being deleted or lacks an owner: the garbage collector is about to delete it, or
// the cache lacks it.
func isSettled(there, want metav1.Object, err error) error {
	if err != nil {
		return err
	}
	if there.GetDeletionTimestamp() != nil {
		return ErrPassing
	}
	for _, owner := range want.GetOwnerReferences() {
		if !isOwner(there, owner.UID) {
			return ErrPassing
		}
	}
	return nil
}

func applicationReference(app *shipper.Application) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: shipper.GroupVersion.String(), Kind: "Application", Name: app.Name, UID: app.UID}
}

func releaseReference(rel *shipper.Release) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: shipper.GroupVersion.String(), Kind: "Release", Name: rel.Name, UID: rel.UID}
}

func headReference(head metav1.Object) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: shipper.GroupVersion.String(), Kind: "ResourceSnapshot", Name: head.GetName(), UID: head.GetUID(),
	}
}

// metadata is a ResourceSnapshot without its content: only so are they cached.
func metadata() *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(Kind())
	return o
}

// Kind is that of the objects whose metadata Snapshots reads from the cache.
func Kind() schema.GroupVersionKind { return shipper.GroupVersion.WithKind("ResourceSnapshot") }

func wrap(err error, kind string, o client.Object) error {
	return fmt.Errorf("keeping %s %s: %w", kind, client.ObjectKeyFromObject(o), err)
}
