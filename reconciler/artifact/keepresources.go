// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/chart/values"
)

// Keep stores content in the namespace of an Application, for the Application until a Release has the digest. What exists stays.
// It creates the head first: the garbage collector then deletes an incomplete set with it.
func (s *Resources) Keep(ctx context.Context, app *shipper.Application, rels []*shipper.Release, parts []objects.Part) error {
	snapshots := snapshotsOf(app.Namespace, parts)
	secrets, err := secretsOf(app.Namespace, parts)
	if err != nil {
		return err
	}
	uids := make([]types.UID, len(rels))
	for i, rel := range rels {
		uids[i] = rel.UID
	}
	head := snapshots[0]
	if err := s.put(ctx, head, ownedBy("Application", app), uids...); err != nil {
		return err
	}
	for _, part := range snapshots[1:] {
		if err := s.put(ctx, part, ownedBy(resourceSnapshot, head)); err != nil {
			return err
		}
	}
	for _, secret := range secrets {
		secret.OwnerReferences = []metav1.OwnerReference{ownedBy(resourceSnapshot, head)}
		if err := s.keepSecret(ctx, secret, head.UID); err != nil {
			return fmt.Errorf("storing Secret %s: %w", client.ObjectKeyFromObject(secret), err)
		}
	}
	return nil
}

// keepSecret creates a Secret unless it exists. Secrets are not cached.
func (s *Resources) keepSecret(ctx context.Context, secret *corev1.Secret, head types.UID) error {
	there := &corev1.Secret{}
	err := s.reader.Get(ctx, client.ObjectKeyFromObject(secret), there)
	switch {
	case apierrors.IsNotFound(err):
		err = s.client.Create(ctx, secret, client.FieldOwner(shipper.FieldOwner), client.DisableReadYourWritesConsistency)
	case err == nil && (there.Type != secret.Type || !equality.Semantic.DeepEqual(there.Data, secret.Data)):
		return noContent(nil, "Secret %s/%s exists and has other content than its name says: delete it", secret.Namespace, secret.Name)
	case err == nil && (there.DeletionTimestamp != nil || !isOwner(there, head)):
		return errDeleted // the garbage collector deletes it with the head that it belonged to
	}
	if apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return noContent(err, "Shipper may not keep the selected Secrets in Secret %s/%s; %s", secret.Namespace, secret.Name,
			values.PermissionHint(secret.Namespace))
	}
	return err
}
