// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/applyset"
)

// checkOwnership refuses to write an object that looks like this Application's and is another's: one that a controller made, one that an
// anchor of another management cluster owns, or, without a namespace, that an anchor of another Application lists. One of those that a
// whole cluster shares is kept as it is.
func (i *installer) checkOwnership(ctx context.Context, s *step) error {
	var err error
	if s.whose, err = i.maker(ctx, s.item, s.live); err != nil || s.whose != "" {
		s.action = refuse
		return err
	}
	if s.item.Namespace != "" {
		s.whose, err = i.owner(ctx, *s)
	} else {
		s.whose, err = i.lister(ctx, *s)
	}
	switch {
	case s.whose == "":
	case isShared(s.item):
		s.action = keep
	default:
		s.action = refuse
	}
	return err
}

// maker says for what a controller made an object, if one did: ReplicaSets, Pods and claims of StatefulSets have the labels of an
// Application's Pods. An object that Shipper has written has a digest, or the original's anchor for its owner.
func (i *installer) maker(ctx context.Context, entry item, live *metav1.PartialObjectMetadata) (string, error) {
	switch {
	case isMade(live):
		return whose(live), nil
	case live.Annotations[shipper.InstalledDigestAnnotation] != "", slices.ContainsFunc(live.OwnerReferences, isAnchor):
		return "", nil
	}
	made, err := applyset.Maker(ctx, i.member.Live(), entry.gvk().GroupKind(), live)
	if made.Kind != "" {
		return madeBy(made.Kind), nil
	}
	return "", err
}

// owner says to which other management cluster an object belongs, by the anchors that own it.
func (i *installer) owner(ctx context.Context, s step) (string, error) {
	for _, ref := range otherAnchors(i.it, s.live) {
		key := types.NamespacedName{Namespace: s.item.Namespace, Name: ref.Name}
		var cm corev1.ConfigMap
		err := i.member.Client().Get(ctx, key, &cm)
		if apierrors.IsNotFound(err) { // it lacks our label, or is gone
			err = i.member.Live().Get(ctx, key, &cm)
		}
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("reading ConfigMap %s, which owns %s: %w", ref.Name, s.item, err)
		}
		if claim := i.member.Claim(&cm); cm.UID == ref.UID && claim != nil {
			return "it belongs to " + claimant(claim), nil
		}
	}
	return "", nil
}

// lister says to which other Application an object without a namespace belongs, by the anchors that list it. The label
// proves nothing: Applications of other namespaces and of other management clusters may have the same name.
func (i *installer) lister(ctx context.Context, s step) (string, error) {
	anchors, err := otherAnchorsIn(ctx, i.member, i.it)
	if err != nil {
		return "", err
	}
	for n := range anchors {
		cm := &anchors[n]
		a, app := anchorOf(i.member, cm), cm.Labels[shipper.AppLabel]
		own := cm.Namespace == i.it.Namespace && app == i.it.Labels[shipper.AppLabel]
		if own && a.claim == nil || !contains(a.inventory, s.item) {
			continue
		}
		text := fmt.Sprintf("it belongs to the Application %q in namespace %q", app, cm.Namespace)
		if a.claim != nil {
			text += " of " + claimant(a.claim)
		}
		return text, nil
	}
	return "", nil
}

// claimant names the management cluster of a claim.
func claimant(err error) string {
	var claim *fleet.ClaimError
	if errors.As(err, &claim) {
		return fmt.Sprintf("the management cluster %q, says ConfigMap %q", claim.Theirs, claim.Anchor)
	}
	return "another management cluster"
}
