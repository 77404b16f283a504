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

func TestRightsToPlaceContent(t *testing.T) {
	namespaced := func(namespace string) rights.Selected {
		return rights.Selected{Index: -1, Resource: "configmaps", Namespaced: true, Namespace: namespace, Name: "a"}
	}
	role := func(name string) rights.Selected {
		return rights.Selected{Index: -1, Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: name}
	}
	placeRole := func(name string) rights.Action {
		return rights.Action{Verb: rights.Place, Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: name}
	}
	for sentence, tc := range map[string]struct {
		content []rights.Selected
		asked   []rights.Action
		want    []rights.Action
	}{
		"what is of the own namespace needs none": {content: []rights.Selected{namespaced("work")}},
		"another namespace needs one right": {
			content: []rights.Selected{namespaced("payments"), namespaced("payments")}, want: []rights.Action{rights.PlaceNamespace("payments")},
		},
		"the selectors were asked for it": {
			content: []rights.Selected{namespaced("payments"), role("a")},
			asked:   []rights.Action{rights.PlaceNamespace("payments"), placeRole("a")},
		},
		"the selectors were asked for all of it": {
			content: []rights.Selected{namespaced("payments"), role("a")}, asked: []rights.Action{rights.PlaceNamespace(""), placeRole("")},
		},
		"a kind without a namespace needs one for each name": {
			content: []rights.Selected{role("a"), role("b")}, asked: []rights.Action{placeRole("c")},
			want: []rights.Action{placeRole("a"), placeRole("b")},
		},
	} {
		var asked, want []rights.Need
		for _, a := range tc.asked {
			asked = append(asked, rights.Need{Action: a})
		}
		for _, a := range tc.want {
			want = append(want, rights.Need{Action: a, Index: -1})
		}
		if diff := cmp.Diff(want, rights.ToPlaceContent("work", tc.content, asked)); diff != "" {
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
