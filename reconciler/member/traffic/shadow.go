// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// shadowSuffix makes the name of the Service that proves.
const shadowSuffix = "-shipper-proof"

// shadowName is that of the Service that proves what another may select, which is at most 63 characters long. Where that leaves out
// the end of the name, a digest takes its place: others may begin alike.
func shadowName(of string) string {
	if room := validation.DNS1035LabelMaxLength - len(shadowSuffix); len(of) > room {
		digest := fmt.Sprintf("-%x", sha256.Sum256([]byte(of)))[:9]
		of = of[:room-len(digest)] + digest
	}
	return of + shadowSuffix
}

// isShadow reports whether a Service is the one that proves what another may select.
func isShadow(one, of *corev1.Service) bool {
	return one.Name == shadowName(of.Name) && one.Labels[shipper.ProofLabel] == string(of.UID) && one.DeletionTimestamp == nil
}

// switchService carries out what has to be done with the Service, after the labels: first the shadow Service, then the selector. If another
// writer was faster, its event triggers the next pass.
func switchService(ctx context.Context, m *fleet.Member, seen *Outcome) error {
	turn, of := seen.change, seen.selectors
	if turn.Select != nil {
		return setSelector(ctx, m, seen.service, of.Selector(*turn.Select))
	}
	if seen.shadow != nil && (turn.Shadow == nil || !maps.Equal(seen.shadow.Spec.Selector, of.Selector(*turn.Shadow))) {
		err := m.Client().Delete(ctx, seen.shadow, client.Preconditions{UID: &seen.shadow.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing Service %s: %w", seen.shadow.Name, err)
		}
		return nil // another one comes when this is seen to be gone
	}
	if turn.Shadow == nil || seen.shadow != nil {
		return nil
	}
	return createShadow(ctx, m, seen.service, of.Selector(*turn.Shadow))
}

// switchPreview makes the preview Service select the Release that is wished for.
func switchPreview(ctx context.Context, m *fleet.Member, seen observation, wish string) error {
	next := seen.previewApp.NextPreview(wish)
	if next == nil {
		return nil
	}
	return setSelector(ctx, m, seen.preview, seen.previewSelectors.Selector(*next))
}

// createShadow makes the shadow Service. There may be one that the cache lacks: it is new, or a user removed the label that the cache
// selects by.
func createShadow(ctx context.Context, m *fleet.Member, service *corev1.Service, selector map[string]string) error {
	proof := shadowOf(service, selector)
	err := m.Client().Create(ctx, proof, client.FieldOwner(shipper.FieldOwner))
	if apierrors.IsAlreadyExists(err) {
		there := &corev1.Service{}
		got := m.Live().Get(ctx, client.ObjectKeyFromObject(proof), there)
		switch {
		case apierrors.IsNotFound(got):
			return nil
		case got == nil && isOwnedShadow(there, service):
			err = relabel(ctx, m, there, proof.Labels)
		}
	}
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return fmt.Errorf("making Service %s, which proves for moments what Service %s may select: traffic stays as it is until "+
			"the cluster admits it, so raise the quota of Services by one, or except what has the label %s from the policy: %w",
			proof.Name, service.Name, shipper.ProofLabel, err)
	}
	if err != nil {
		return fmt.Errorf("making Service %s, which proves what %s may select: %w", proof.Name, service.Name, err)
	}
	return nil
}

// isOwnedShadow reports whether a Service that has the name of a proof was made as that of another.
func isOwnedShadow(there, service *corev1.Service) bool {
	return there.DeletionTimestamp == nil && slices.ContainsFunc(there.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return ref.Kind == "Service" && ref.UID == service.UID
	})
}

// relabel restores the labels of a shadow Service. Its event triggers the next pass.
func relabel(ctx context.Context, m *fleet.Member, proof *corev1.Service, labels map[string]string) error {
	labelled := proof.DeepCopy()
	if labelled.Labels == nil {
		labelled.Labels = map[string]string{}
	}
	maps.Copy(labelled.Labels, labels)
	if maps.Equal(labelled.Labels, proof.Labels) {
		return nil
	}
	return client.IgnoreNotFound(m.Client().Patch(ctx, labelled, client.MergeFrom(proof), client.FieldOwner(shipper.FieldOwner)))
}

// setSelector makes the Service select otherwise, as it was read only. A conflict is an error, so that the pass is made again: an admission
// webhook of the cluster may have caused it, and then no event follows.
func setSelector(ctx context.Context, m *fleet.Member, service *corev1.Service, selector map[string]string) error {
	turned := service.DeepCopy()
	turned.Spec.Selector = selector
	patch := client.MergeFromWithOptions(service, client.MergeFromWithOptimisticLock{})
	err := m.Consistent().Patch(ctx, turned, patch, client.FieldOwner(shipper.FieldOwner))
	if err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil
		}
		return fmt.Errorf("changing the selector of Service %s: %w", service.Name, err)
	}
	log.FromContext(ctx).V(1).Info("The Service selects otherwise", "cluster", m.Name, "service", service.Name, "selector", selector)
	return m.WaitForCache(ctx, turned) // the next pass would take the selector before for the new one
}

// shadowOf is a Service without an address, of the same kind of endpoints as another. It goes with that.
func shadowOf(service *corev1.Service, selector map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: shadowName(service.Name),
			Labels: map[string]string{shipper.AppLabel: service.Labels[shipper.AppLabel], shipper.ProofLabel: string(service.UID)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Service", Name: service.Name, UID: service.UID,
			}},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: selector,
			IPFamilies: service.Spec.IPFamilies, IPFamilyPolicy: service.Spec.IPFamilyPolicy,
		},
	}
}
