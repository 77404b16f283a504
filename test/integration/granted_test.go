// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/install"
	"shipper.dev/shipper/test/charts"
)

const (
	grantedRole = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS-granted}, rules: [` +
		`{apiGroups: [""], resources: [nodes/metrics], verbs: [VERB]}]}` + "\n"
	otherRole = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS-other}}` + "\n"
)

// TestAGrantIsOfOneNameForPlacementsAlone has an account with the rights of `shipperctl clusters join`, and tenants that attack a grant.
func TestAGrantIsOfOneNameForPlacementsAlone(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	const name = "granting"
	s.lend(s.limited(name, func(rbacv1.PolicyRule) bool { return false }))
	s.lend(aCluster(name, west))
	s.clusterIs(name, "")
	content := func(letter, verb, more string) shipper.TargetResources {
		snapshot := s.snapshot(letter, strings.Replace(grantedRole, "VERB", verb, 1)+more)
		return shipper.TargetResources{Snapshot: snapshot, Removal: shipper.RemovalAll}
	}
	it := s.place("web-1", content("1", "get", ""), name)
	role := s.namespace + "-granted"
	command := "shipperctl clusters grant clusterroles.rbac.authorization.k8s.io/" + role + " --clusters " + name +
		" --reason WHY --rules FILE"
	s.deniedWith("web-1", name, command)

	a := s.granter(name)
	roles := schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterroles"}
	bindings := schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterrolebindings"}
	granted := []install.Granted{
		{GroupResource: roles, Name: role}, {GroupResource: roles, Name: s.namespace + "-spare"}, {GroupResource: bindings, Name: role},
	}
	metrics := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes/metrics"}, Verbs: []string{"get"}}
	s.must(a.Grants(s.ctx, granted, []rbacv1.PolicyRule{metrics}, "a test"))
	s.Cleanup(func() { s.must(a.NoGrants(context.Background(), granted)) })
	s.installed("web-1")
	s.hasRules(role, metrics)

	s.change(it, func(o client.Object) {
		o.(*shipper.InstallationTarget).Spec.Resources.Snapshot = content("2", "create", "---\n"+otherRole).Snapshot
	})
	s.deniedWith("web-1", name, "--rules FILE", s.namespace+"-other --clusters")
	s.hasRules(role, metrics)
	other := client.ObjectKey{Name: s.namespace + "-other"}
	if err := world.clusters[west].Get(s.ctx, other, &rbacv1.ClusterRole{}); !apierrors.IsNotFound(err) {
		t.Errorf("a ClusterRole that is not granted was written: %v", err)
	}

	s.handsOnNoGrant(it, name, content)

	for chart, tc := range map[string]struct{ template, refused string }{
		"granted-name": {
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "{{ .Release.Namespace }}-spare"}}`,
			`ClusterRole "` + s.namespace + `-spare": Shipper's account lacks rights to clusterroles.rbac.authorization.k8s.io`,
		},
		"granted-account": {
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: act}, rules: [` +
				`{apiGroups: [""], resources: [serviceaccounts], resourceNames: [shipper-granted], verbs: [impersonate]}]}`,
			`Role "act": Shipper's account lacks rights that it gives`,
		},
	} {
		archive, err := charts.PackFiles(chart, "0.0.1", map[string]string{
			"Chart.yaml":                "apiVersion: v2\nname: " + chart + "\nversion: 0.0.1\n",
			"templates/deployment.yaml": ownKind["templates/deployment.yaml"], "templates/service.yaml": ownKind["templates/service.yaml"],
			"templates/attack.yaml": tc.template,
		})
		s.must(err)
		world.charts.Publish(archive)
		s.install(chart, chart, "0.0.1", shipper.ChartValues{}, name)
		if said := s.notInstalled(chart, name, shipper.NotGranted); !strings.HasPrefix(said, tc.refused) {
			t.Errorf("the refusal does not begin with %q: %s", tc.refused, said)
		}
	}

	s.must(s.management.Delete(s.ctx, it))
	s.soon("the ClusterRole that was placed is still there", func() string {
		err := world.clusters[west].Get(s.ctx, client.ObjectKey{Name: role}, &rbacv1.ClusterRole{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return "it is there"
	})
}

// handsOnNoGrant places bindings that give a tenant the rights of another grant. RBAC of a real API server admits them.
func (s *fixture) handsOnNoGrant(
	it *shipper.InstallationTarget, cluster string, content func(letter, verb, more string) shipper.TargetResources,
) {
	s.Helper()
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-granted"}}
	const text = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: NS-granted}, roleRef: {apiGroup: " +
		"rbac.authorization.k8s.io, kind: ClusterRole, name: \"ROLE\"}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: " +
		"mallory}]}\n"
	writer := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-writer"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{s.namespace + "-spare"},
		Verbs: []string{"patch"},
	}}}
	s.must(world.clusters[west].Create(s.ctx, writer))
	s.Cleanup(func() { s.must(world.clusters[west].Delete(context.Background(), writer)) })
	for letter, of := range map[string]struct{ role, refused string }{
		"3": {
			"shipper:grant:clusterroles.rbac.authorization.k8s.io:" + s.namespace + "-spare",
			"its roleRef gives its subjects the right to write",
		},
		"4": {writer.Name, "whose rules[0] writes objects that give rights"},
	} {
		more := "---\n" + strings.Replace(text, "ROLE", of.role, 1)
		s.change(it, func(o client.Object) {
			o.(*shipper.InstallationTarget).Spec.Resources.Snapshot = content(letter, "get", more).Snapshot
		})
		s.refusedWith(it.Name, cluster, of.refused)
		err := world.clusters[west].Get(s.ctx, client.ObjectKeyFromObject(binding), &rbacv1.ClusterRoleBinding{})
		if !apierrors.IsNotFound(err) {
			s.Errorf("a binding gives the rights of %s: %v", of.role, err)
		}
	}
}

// granter grants to an account in the western cluster, as an administrator.
func (s *fixture) granter(account string) *install.Application {
	s.Helper()
	c, err := install.NewClient(world.members[west].Config)
	s.must(err)
	return &install.Application{
		Client: c, Report: install.NewReport(io.Discard), Name: account, ServiceAccount: account, Clock: clock.RealClock{},
	}
}

// deniedWith waits until a target is NotGranted in a cluster, in these words among others.
func (s *fixture) deniedWith(target, cluster string, words ...string) {
	s.Helper()
	s.refusedWith(target, cluster, append(words, shipper.NotGranted)...)
}

// refusedWith waits until a target is not ready in a cluster, with these words in reason and message.
func (s *fixture) refusedWith(target, cluster string, words ...string) {
	s.Helper()
	s.soon(target+" is not refused as expected", func() string {
		it := &shipper.InstallationTarget{}
		s.must(s.management.Get(s.ctx, s.key(target), it))
		for _, one := range it.Status.Clusters {
			c := shipper.FindCondition(one.Conditions, shipper.TargetReady)
			if one.Name != cluster || c == nil || c.Status != corev1.ConditionFalse {
				continue
			}
			for _, part := range words {
				if !strings.Contains(c.Reason+": "+c.Message, part) {
					return c.Message
				}
			}
			return ""
		}
		return "it is not refused"
	})
}

// hasRules compares the rules of a ClusterRole in the western cluster.
func (s *fixture) hasRules(name string, want ...rbacv1.PolicyRule) {
	s.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.must(world.clusters[west].Get(s.ctx, client.ObjectKeyFromObject(role), role))
	if diff := cmp.Diff(want, role.Rules); diff != "" {
		s.Errorf("rules of %s (-want +got):\n%s", name, diff)
	}
}
