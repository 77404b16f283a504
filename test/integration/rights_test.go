// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// TestMissingRightsAreSaidAndUsedSoonAfterTheyAreGiven installs with an account that has the rights of `shipperctl clusters join` alone.
func TestMissingRightsAreSaidAndUsedSoonAfterTheyAreGiven(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	const name = "limited"
	s.lend(s.limited(name, func(rbacv1.PolicyRule) bool { return false }))
	s.lend(aCluster(name, west))
	s.clusterIs(name, "")
	archive, err := charts.PackFiles("rights", "0.0.1", map[string]string{
		"Chart.yaml":                "apiVersion: v2\nname: rights\nversion: 0.0.1\n",
		"templates/deployment.yaml": ownKind["templates/deployment.yaml"], "templates/service.yaml": ownKind["templates/service.yaml"],
		"templates/class.yaml": `{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: "{{ .Release.Namespace }}"}, ` +
			`spec: {controller: a/b}}`,
		"templates/priority.yaml": `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, ` +
			`metadata: {name: "{{ .Release.Namespace }}"}, value: 1}`,
		"templates/role.yaml": `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: it}, ` +
			`rules: {{ .Values.rules | toJson }}}`,
	})
	s.must(err)
	world.charts.Publish(archive)
	s.install("web-1", "rights", "0.0.1", shipper.ChartValues{"rules": []any{}}, name)

	const shared = "every chart and Envelope of every tenant that may write Applications can do what Shipper's account may"
	want := fmt.Sprintf("PriorityClass %[1]q, IngressClass %[1]q: Shipper's account lacks rights to priorityclasses.scheduling.k8s.io, "+
		"ingressclasses.networking.k8s.io; in cluster limited: kubectl create clusterrole shipper-priorityclasses-ingressclasses "+
		"--verb=get,list,watch,create,patch,delete --resource=priorityclasses.scheduling.k8s.io,ingressclasses.networking.k8s.io && "+
		"kubectl label clusterrole shipper-priorityclasses-ingressclasses shipper.booking.com/aggregate-to-application=true; %s",
		s.namespace, shared)
	if got := s.notInstalled("web-1", name, shipper.NotGranted); got != want {
		t.Errorf("it says %s\nwant    %s", got, want)
	}
	s.grant(name, rbacv1.PolicyRule{
		APIGroups: []string{"networking.k8s.io", "scheduling.k8s.io"}, Resources: []string{"ingressclasses", "priorityclasses"},
		Verbs: []string{"get", "list", "watch", "create", "patch", "delete"},
	})
	first := s.installed("web-1")

	// A Role may give no more than Shipper's account has.
	nodes := []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"nodes"}, "verbs": []any{"delete"}}}
	second := s.install("web-2", "rights", "0.0.1", shipper.ChartValues{"rules": nodes}, name)
	want = `Role "it": Shipper's account lacks rights that it gives; shipperctl chart check rights --version 0.0.1 --repo ` +
		world.charts.URL + " --values VALUES.yaml --grant prints a ClusterRole with all rights that the chart takes, for an administrator " +
		"to apply in cluster limited; " + shared
	if got := s.notInstalled("web-2", name, shipper.NotGranted); got != want {
		t.Errorf("it says %s\nwant    %s", got, want)
	}
	s.grant(name, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"delete"}})
	s.installed("web-2")
	for _, it := range []*shipper.InstallationTarget{first, second} {
		s.must(s.management.Delete(s.ctx, it))
		s.gone(it)
	}
}

// grant gives a right to the account that limited made.
func (s *fixture) grant(name string, rule rbacv1.PolicyRule) {
	s.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.must(world.clusters[west].Get(s.ctx, client.ObjectKeyFromObject(role), role))
	role.Rules = append(role.Rules, rule)
	s.must(world.clusters[west].Update(s.ctx, role))
}
