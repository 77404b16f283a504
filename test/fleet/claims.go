// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// BindClaims gives each claim of a cluster a volume, as a provisioner would, until end is called. Simulated nodes mount nothing: the
// scheduler waits for the binding alone.
func BindClaims(ctx context.Context, member client.WithWatch) (end func(), err error) {
	ctx = context.WithoutCancel(ctx) // end ends it
	claims, err := member.Watch(ctx, &corev1.PersistentVolumeClaimList{})
	if err != nil {
		return nil, fmt.Errorf("watching claims: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for event := range claims.ResultChan() {
			claim, ok := event.Object.(*corev1.PersistentVolumeClaim)
			if !ok || event.Type == watch.Deleted || claim.Spec.VolumeName != "" {
				continue
			}
			if err := bindClaim(ctx, member, claim); err != nil {
				fmt.Fprintf(os.Stderr, "binding claim %s/%s: %v\n", claim.Namespace, claim.Name, err)
			}
		}
	}()
	return func() { claims.Stop(); <-ended }, nil
}

// bindClaim does what the volume binder of Kubernetes does.
func bindClaim(ctx context.Context, member client.Client, claim *corev1.PersistentVolumeClaim) error {
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-" + string(claim.UID)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, VolumeMode: claim.Spec.VolumeMode,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}},
		},
	}
	if class := claim.Spec.StorageClassName; class != nil {
		volume.Spec.StorageClassName = *class
	}
	if err := member.Create(ctx, volume); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	before := claim.DeepCopy()
	claim.Spec.VolumeName = volume.Name
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, "pv.kubernetes.io/bind-completed", "yes")
	err := member.Patch(ctx, claim, client.MergeFrom(before))
	before = claim.DeepCopy()
	claim.Status.Phase, claim.Status.AccessModes, claim.Status.Capacity = corev1.ClaimBound, claim.Spec.AccessModes, volume.Spec.Capacity
	bound := volume.DeepCopy()
	bound.Status.Phase = corev1.VolumeBound
	return errors.Join(err, member.Status().Patch(ctx, claim, client.MergeFrom(before)),
		member.Status().Patch(ctx, bound, client.MergeFrom(volume)))
}
