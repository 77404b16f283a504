// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestExpand(t *testing.T) {
	got := expand([]rbacv1.PolicyRule{
		{APIGroups: []string{"", "apps"}, Resources: []string{"pods/log"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"a", "b"}, Verbs: []string{"get"}},
	}, "here")
	want := []right{
		{"here", "", "pods/log", "", "get"}, {"here", "", "pods/log", "", "list"},
		{"here", "apps", "pods/log", "", "get"}, {"here", "apps", "pods/log", "", "list"},
		{"here", "", "secrets", "a", "get"}, {"here", "", "secrets", "b", "get"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(right{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestRightsOfTheManifests(t *testing.T) {
	application, err := rightsOf(applicationRole, "")
	if err != nil {
		t.Fatal(err)
	}
	management, err := rightsOf(managementRole, "ship")
	if err != nil {
		t.Fatal(err)
	}
	for sentence, tc := range map[string]struct {
		all  []right
		is   right
		want bool
	}{
		"Shipper patches Deployments": {application, right{group: "apps", resource: "deployments", verb: "patch"}, true},
		"Shipper's own namespace there is not asked": {
			application, right{"ship", "coordination.k8s.io", "leases", "shipper-heartbeat", "get"}, false,
		},
		"Shipper moves Releases": {
			management, right{group: "shipper.booking.com", resource: "releases", verb: "patch"}, true,
		},
		"Shipper reads Secrets where it is": {management, right{namespace: "ship", resource: "secrets", verb: "get"}, true},
		"and nowhere else":                  {management, right{resource: "secrets", verb: "get"}, false},
		"what people may is not what Shipper may": {
			management, right{group: "shipper.booking.com", resource: "rolloutblocks", verb: "override"}, false,
		},
	} {
		if slices.Contains(tc.all, tc.is) != tc.want {
			t.Error(sentence)
		}
	}
}

func TestMissing(t *testing.T) {
	rights := []right{{resource: "pods", verb: "get"}, {resource: "secrets", verb: "get"}, {resource: "nodes", verb: "get"}}
	got, err := missing(t.Context(), rights, func(_ context.Context, r right) (bool, error) { return r.resource != "secrets", nil })
	if diff := cmp.Diff([]right{{resource: "secrets", verb: "get"}}, got, cmp.AllowUnexported(right{})); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	broken := errors.New("no answer")
	if _, err := missing(t.Context(), rights, func(context.Context, right) (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
}

func TestWhatIsAskedAboutARight(t *testing.T) {
	r := right{"here", "shipper.booking.com", "releases/status", "web", "patch"}
	want := &authorizationv1.ResourceAttributes{
		Namespace: "here", Group: "shipper.booking.com", Resource: "releases", Subresource: "status", Name: "web", Verb: "patch",
	}
	if diff := cmp.Diff(want, r.attributes()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := r.String(); got != "releases.shipper.booking.com/status named web in here" {
		t.Error(got)
	}
}
