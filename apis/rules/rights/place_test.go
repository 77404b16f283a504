// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/rights"
)

func TestRightsToPlace(t *testing.T) {
	for sentence, tc := range map[string]struct {
		selected rights.Selected
		want     rights.Action
	}{
		"one object of the own namespace is read": {
			rights.Selected{Resource: "configmaps", Namespaced: true, Namespace: "work", Name: "a"},
			rights.Action{Verb: "get", Resource: "configmaps", Namespace: "work", Name: "a"},
		},
		"all of them are listed": {
			rights.Selected{Group: "apps", Resource: "deployments", Namespaced: true, Namespace: "work"},
			rights.Action{Verb: "list", Group: "apps", Resource: "deployments", Namespace: "work"},
		},
		"one of another namespace is its content": {
			rights.Selected{Resource: "secrets", Namespaced: true, Namespace: "payments", Name: "a"},
			rights.Action{Verb: rights.Place, Resource: "namespaces", Name: "payments"},
		},
		"the own Namespace is placed, for it has all Secrets": {
			rights.Selected{Resource: "namespaces", Name: "work"},
			rights.Action{Verb: rights.Place, Resource: "namespaces", Name: "work"},
		},
		"all of a kind without a namespace are placed": {
			rights.Selected{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
			rights.Action{Verb: rights.Place, Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		},
	} {
		tc.selected.Index = 3
		got := rights.ToPlace("work", []rights.Selected{tc.selected})
		if diff := cmp.Diff([]rights.Need{{Action: tc.want, Index: 3}}, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", sentence, diff)
		}
	}
}

func TestListsOfWhatIsLackedAreShort(t *testing.T) {
	if got := rights.List(strings.Split("a b c d e", " ")); got != "a; b; c; d; e" {
		t.Error(got)
	}
	if got := rights.List(strings.Split("a b c d e f g", " ")); got != "a; b; c; d; e; and 2 more" {
		t.Error(got)
	}
}
