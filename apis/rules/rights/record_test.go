// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/rights"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
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
		"none": {text: "none"},
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
	for _, text := range []string{"payments", "namespaces/a,", "namespaces/a/b"} {
		if diff := cmp.Diff([]rights.Action{every}, rights.ParseRecord(text)); diff != "" {
			t.Errorf("%q, of another form: -want +got:\n%s", text, diff)
		}
	}
}

// TestEnvelopesWithoutARecordNeedTheRightToEverything is about what an earlier version has placed.
func TestEnvelopesWithoutARecordNeedTheRightToEverything(t *testing.T) {
	selecting := func(group, kind string, content shipper.NamespaceContent) *shipper.Resources {
		return &shipper.Resources{Select: []shipper.ResourceSelector{{Group: group, Kind: kind, Content: content}}}
	}
	envelope := selecting(shipper.GroupName, "Envelope", "")
	every := []rights.Action{rights.PlaceEverything}
	app, rel := shipper.AppHighestObservedGenerationAnnotation, shipper.ReleaseGenerationAnnotation
	for sentence, tc := range map[string]struct {
		of   *shipper.Resources
		with map[string]string
		want []rights.Action
	}{
		"a Release":                    {envelope, map[string]string{rel: "0"}, every},
		"an Application":               {envelope, map[string]string{app: "0"}, every},
		"an Application never placed":  {envelope, nil, nil},
		"a record of no rights":        {envelope, map[string]string{rel: "0", shipper.ContentRightsAnnotation: "none"}, nil},
		"no Envelope":                  {selecting("", "ConfigMap", ""), map[string]string{rel: "0"}, nil},
		"a Namespace with its content": {selecting("", "Namespace", ""), map[string]string{rel: "0"}, every},
		"a Namespace alone":            {selecting("", "Namespace", shipper.ContentNone), map[string]string{rel: "0"}, nil},
		"a chart":                      {nil, map[string]string{rel: "0"}, nil},
	} {
		if diff := cmp.Diff(tc.want, rights.Recorded(tc.of, tc.with)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", sentence, diff)
		}
	}
}
