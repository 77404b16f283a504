// SPDX-License-Identifier: Apache-2.0

// Package access asks the API server what users may do.
package access

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/rights"
)

// May reports whether a user may do something, by a SubjectAccessReview. The cache of c must not read what c creates: reviews cannot be
// watched.
func May(ctx context.Context, c client.Writer, who authenticationv1.UserInfo, what rights.Action) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.Username, UID: who.UID, Groups: who.Groups, ResourceAttributes: attributes(what),
	}}
	if err := c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking whether %s may %s %s: %w", who.Username, what.Verb, what.Object(), err)
	}
	return review.Status.Allowed, nil
}

// Own reports whether the user of c may do something, by a SelfSubjectAccessReview.
func Own(ctx context.Context, c client.Writer, what rights.Action) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: attributes(what),
	}}
	if err := c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking for the right to %s %s: %w", what.Verb, what.Object(), err)
	}
	return review.Status.Allowed, nil
}

func attributes(of rights.Action) *authorizationv1.ResourceAttributes {
	return &authorizationv1.ResourceAttributes{
		Verb: of.Verb, Group: of.Group, Version: "*", Resource: of.Resource, Namespace: of.Namespace, Name: of.Name,
	}
}
