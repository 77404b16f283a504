// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestElsewhere(t *testing.T) {
	subject := func(namespace, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: name}
	}
	found := func(what, do string) []Finding {
		return []Finding{{Level: levelBroken, What: what, Why: "what was looked for is not where it is", Do: do}}
	}
	for sentence, tc := range map[string]struct {
		subjects []rbacv1.Subject
		want     []Finding
	}{
		"it is here":      {[]rbacv1.Subject{subject("shipper-system", "shipper-mgmt-cluster")}, nil},
		"it is here, too": {[]rbacv1.Subject{subject("ci", "bot"), subject("shipper-system", "shipper-mgmt-cluster")}, nil},
		"it is nowhere":   {nil, nil},
		"in another namespace": {
			[]rbacv1.Subject{subject("ship", "shipper-mgmt-cluster")},
			found("Shipper is not set up as shipper-system/shipper-mgmt-cluster, but as ship/shipper-mgmt-cluster", "shipperctl doctor -n ship"),
		},
		"by another name": {
			[]rbacv1.Subject{subject("shipper-system", "me")},
			found("Shipper is not set up as shipper-system/shipper-mgmt-cluster, but as shipper-system/me",
				"shipperctl doctor --management-cluster-service-account me"),
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, elsewhereFindings(tc.subjects, "shipper-system", "shipper-mgmt-cluster")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFlagsOf(t *testing.T) {
	configuration := func(client map[string]any) map[string]any {
		return map[string]any{"webhooks": []any{map[string]any{"clientConfig": client}}}
	}
	for sentence, tc := range map[string]struct {
		object map[string]any
		want   []string
	}{
		"a webhook in the cluster": {configuration(map[string]any{"service": map[string]any{"name": "shipper-webhook"}}), nil},
		"a webhook outside": {
			configuration(map[string]any{"url": "https://gate:9443/mutate"}), []string{" --webhook-url https://gate:9443"},
		},
		"the usual namespace of global blocks": {
			map[string]any{"spec": map[string]any{"paramRef": map[string]any{"namespace": "rollout-blocks-global"}}}, nil,
		},
		"another namespace of global blocks": {
			map[string]any{"spec": map[string]any{"paramRef": map[string]any{"namespace": "freezes"}}}, []string{" -g freezes"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, flagsOf(&unstructured.Unstructured{Object: tc.object})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAdvise(t *testing.T) {
	got := advise([]Check{{"kinds", []Finding{{Do: "with the one that runs: " + setUp}, {Do: "nothing"}}}}, setUp+" -n ship")
	want := []Check{{"kinds", []Finding{{Do: "with the one that runs: shipperctl clusters setup management -n ship"}, {Do: "nothing"}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
