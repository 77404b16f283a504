// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/certs/reviewpath"
)

func TestWebhooksWithAnotherPathThanTheSecretOneAreReported(t *testing.T) {
	const token = "abcdefghijklmnopqrstuvwxyz"
	secret := &corev1.Secret{Data: map[string][]byte{reviewpath.TokenKey: []byte(token)}}
	webhooks := []webhook{
		{name: "service", path: "/" + token + "/validate-application"}, {name: "url", path: "/base/" + token + "/validate-check"},
		{name: "reset", path: "/validate-application"}, {name: "older", path: "/" + strings.Repeat("a", 26) + "/validate-check"},
	}
	found := pathFindings(secret, webhooks)
	if len(found) != 1 || !strings.HasSuffix(found[0].What, " for reset, older") {
		t.Errorf("got %+v", found)
	}
	for sentence, none := range map[string][]Finding{
		"all have it": pathFindings(secret, webhooks[:2]), "before a webhook has run": pathFindings(&corev1.Secret{}, webhooks),
		"without a Secret": pathFindings(nil, webhooks),
	} {
		if len(none) > 0 {
			t.Errorf("%s: %+v", sentence, none)
		}
	}
}

func TestReadersOfThePathAreAdministrators(t *testing.T) {
	rule := func(group, resource, verb string, names ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{
			APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names,
		}}
	}
	const group, resource = "admissionregistration.k8s.io", "mutatingwebhookconfigurations"
	role := func(name string, rules []rbacv1.PolicyRule) rbacv1.ClusterRole {
		return rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	}
	roles := []rbacv1.ClusterRole{
		role("cluster-admin", rule("*", "*", "*")), role("auditor", rule(group, "*", "list")),
		role("by-name", rule(group, resource, "get", "shipper.booking.com")), role("another", rule(group, resource, "get", "other")),
		role("writer", rule(group, resource, "create")), role("pods", rule("", "*", "*")),
	}
	var bindings []rbacv1.ClusterRoleBinding
	bind := func(role, kind, namespace, name string) {
		bindings = append(bindings, rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "b"}, RoleRef: rbacv1.RoleRef{Name: role},
			Subjects: []rbacv1.Subject{{Kind: kind, Namespace: namespace, Name: name}},
		})
	}
	for _, r := range roles {
		bind(r.Name, "Group", "", "system:masters")
		bind(r.Name, "ServiceAccount", "kube-system", "generic-garbage-collector")
		bind(r.Name, "User", "", "system:kube-controller-manager")
		bind(r.Name, "ServiceAccount", "shipper-system", "shipper-mgmt-cluster")
		bind(r.Name, "ServiceAccount", "monitoring", "prometheus")
		bind(r.Name, "User", "", "dev")
	}
	bind("cluster-admin", "Group", "", "platform")
	bind("cluster-admin", "Group", "", "system:authenticated")
	found := readerFindings(roles, bindings, "shipper-system")
	if len(found) != 1 {
		t.Fatalf("got %+v", found)
	}
	_, got, _ := strings.Cut(found[0].What, ": ")
	want := "Group system:authenticated by ClusterRoleBinding b, " +
		"ServiceAccount monitoring/prometheus by ClusterRoleBinding b, User dev by ClusterRoleBinding b"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("readers (-want +got):\n%s", diff)
	}
	if none := readerFindings(roles, bindings[:4], "shipper-system"); none != nil {
		t.Errorf("got %+v", none)
	}
}
