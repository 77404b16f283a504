// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/rights"
)

func TestRecordsOfRightsAreBounded(t *testing.T) {
	role := func(name string) rights.Action {
		return rights.Action{Verb: rights.Place, Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: name}
	}
	var many []rights.Action
	for i := range 13 {
		many = append(many, rights.PlaceNamespace(fmt.Sprint(i)))
	}
	every := rights.Action{Verb: rights.Place, Group: "*", Resource: "*"}
	for sentence, tc := range map[string]struct {
		needs []rights.Action
		text  string
		want  []rights.Action
	}{
		"none": {},
		"a namespace and a name, each once": {
			[]rights.Action{rights.PlaceNamespace("payments"), role("system:guard"), rights.PlaceNamespace("payments")},
			"namespaces/payments,clusterroles.rbac.authorization.k8s.io/system:guard",
			[]rights.Action{rights.PlaceNamespace("payments"), role("system:guard")},
		},
		"a name with a comma is all of the resource": {
			[]rights.Action{role("a,namespaces/b")}, "clusterroles.rbac.authorization.k8s.io/", []rights.Action{role("")},
		},
		"more than one write may need are everything": {many, "*.*/", []rights.Action{every}},
	} {
		text := rights.FormatRecord(tc.needs)
		if text != tc.text {
			t.Errorf("%s: it is %q", sentence, text)
		}
		if diff := cmp.Diff(tc.want, rights.ParseRecord(text)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", sentence, diff)
		}
	}
	if diff := cmp.Diff([]rights.Action{every}, rights.ParseRecord("none")); diff != "" {
		t.Errorf("text of another form: -want +got:\n%s", diff)
	}
}
