// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/rights"
)

var errAway = errors.New("the API server is away")

// reviewer answers reviews, and has the last one that was asked.
type reviewer struct {
	client.Writer
	allows bool
	err    error
	asked  any
}

func (r *reviewer) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	switch review := o.(type) {
	case *authorizationv1.SubjectAccessReview:
		r.asked, review.Status.Allowed = review.Spec, r.allows
	case *authorizationv1.SelfSubjectAccessReview:
		r.asked, review.Status.Allowed = review.Spec, r.allows
	}
	return r.err
}

// TestAReviewHasAllOfTheUserAndOfTheRight is about what the API server is asked: without a group, rights would be missing.
func TestAReviewHasAllOfTheUserAndOfTheRight(t *testing.T) {
	ann := authenticationv1.UserInfo{Username: "ann", UID: "1", Groups: []string{"dev", "system:authenticated"}}
	what := rights.Action{Verb: "get", Group: "apps", Resource: "deployments", Namespace: "work", Name: "web"}
	attributes := &authorizationv1.ResourceAttributes{
		Verb: "get", Group: "apps", Version: "*", Resource: "deployments", Namespace: "work", Name: "web",
	}
	for _, allows := range []bool{true, false} {
		r := &reviewer{allows: allows}
		got, err := May(t.Context(), r, ann, what)
		want := authorizationv1.SubjectAccessReviewSpec{User: "ann", UID: "1", Groups: ann.Groups, ResourceAttributes: attributes}
		if diff := cmp.Diff(want, r.asked); diff != "" || got != allows || err != nil {
			t.Errorf("a user: %t, %v (-want +got)\n%s", got, err, diff)
		}
		got, err = Own(t.Context(), r, what)
		own := authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}
		if diff := cmp.Diff(own, r.asked); diff != "" || got != allows || err != nil {
			t.Errorf("the own user: %t, %v (-want +got)\n%s", got, err, diff)
		}
	}
	away := &reviewer{allows: true, err: errAway}
	if may, err := May(t.Context(), away, ann, what); may || !errors.Is(err, errAway) {
		t.Errorf("without an answer: %t, %v", may, err)
	}
	if may, err := Own(t.Context(), away, what); may || !errors.Is(err, errAway) {
		t.Errorf("without an answer about the own user: %t, %v", may, err)
	}
}
