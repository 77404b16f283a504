// SPDX-License-Identifier: Apache-2.0

package authz_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"shipper.dev/shipper/webhook/authz"
)

// api answers SubjectAccessReviews: yes for ann, an error for broken, no for all others.
type api struct {
	asked []authorizationv1.SubjectAccessReviewSpec
}

// ServeHTTP is http.Handler.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.asked = append(a.asked, review.Spec)
	if review.Spec.User == "broken" {
		http.Error(w, "away", http.StatusInternalServerError)
		return
	}
	review.Status.Allowed = review.Spec.User == "ann"
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

func TestTheAPIServerIsAsked(t *testing.T) {
	server := &api{}
	listening := httptest.NewServer(server)
	defer listening.Close()
	config := &rest.Config{Host: listening.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	client, err := authorizationclient.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	who, err := authz.Delegated(client)
	if err != nil {
		t.Fatal(err)
	}
	block := types.NamespacedName{Namespace: "global", Name: "dns"}
	ann := authenticationv1.UserInfo{
		Username: "ann", UID: "7", Groups: []string{"sre"}, Extra: map[string]authenticationv1.ExtraValue{"scope": {"x"}},
	}
	for range 2 { // the second answer is remembered
		if allowed, err := who.May(t.Context(), ann, authz.On(authz.Override, "rolloutblocks", block)); !allowed || err != nil {
			t.Errorf("ann: got %v, %v", allowed, err)
		}
	}
	want := []authorizationv1.SubjectAccessReviewSpec{{
		User: "ann", UID: "7", Groups: []string{"sre"}, Extra: map[string]authorizationv1.ExtraValue{"scope": {"x"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "override", Group: "shipper.booking.com", Version: "*", Resource: "rolloutblocks", Namespace: "global",
			Name: "dns",
		},
	}}
	if diff := cmp.Diff(want, server.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	bob := authenticationv1.UserInfo{Username: "bob"}
	if allowed, err := who.May(t.Context(), bob, authz.On(authz.Stamp, "releases", block)); allowed || err != nil {
		t.Errorf("bob: got %v, %v", allowed, err)
	}
	if allowed, err := who.May(t.Context(), ann, authz.Action{
		Verb: authz.Place, Group: "apps", Resource: "deployments", Name: "web",
	}); !allowed || err != nil {
		t.Errorf("ann: got %v, %v", allowed, err)
	}
	placed := &authorizationv1.ResourceAttributes{Verb: "place", Group: "apps", Version: "*", Resource: "deployments", Name: "web"}
	if diff := cmp.Diff(placed, server.asked[len(server.asked)-1].ResourceAttributes); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	broken := authenticationv1.UserInfo{Username: "broken"}
	if allowed, err := who.May(t.Context(), broken, authz.On(authz.Stamp, "releases", block)); allowed || err == nil {
		t.Errorf("broken: got %v, %v; want an error", allowed, err)
	}
}
