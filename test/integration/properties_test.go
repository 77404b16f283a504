// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// propertiesAre waits until PropertiesKnown of a Cluster has a status and a reason.
func (s *fixture) propertiesAre(name string, want corev1.ConditionStatus, reason string) *shipper.Cluster {
	s.Helper()
	c := &shipper.Cluster{}
	s.soon(fmt.Sprintf("PropertiesKnown of %s is not %s %s", name, want, reason), func() string {
		s.must(s.management.Get(s.ctx, client.ObjectKey{Name: name}, c))
		known := shipper.FindCondition(c.Status.Conditions, shipper.ClusterPropertiesKnown)
		if known != nil && known.Status == want && known.Reason == reason {
			return ""
		}
		return fmt.Sprintf("%+v", c.Status)
	})
	return c
}

// lendTo makes an object in an application cluster for the time of the test.
func (s *fixture) lendTo(cluster string, object client.Object) {
	s.Helper()
	s.must(world.clusters[cluster].Create(s.ctx, object))
	s.Cleanup(func() {
		if err := world.clusters[cluster].Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
			s.Error(err)
		}
	})
}

func TestTheStatusOfAClusterHasTheSumsOfItsNodes(t *testing.T) {
	s := begin(t)
	c := s.propertiesAre(west, corev1.ConditionTrue, "")
	var nodes corev1.NodeList
	s.must(world.clusters[west].List(s.ctx, &nodes))
	var memory int64
	for _, n := range nodes.Items {
		memory += n.Status.Allocatable.Memory().Value()
	}
	if c.Status.Nodes == nil || int(*c.Status.Nodes) != len(nodes.Items) || len(nodes.Items) == 0 {
		t.Errorf("the Cluster has %v Nodes, want %d", c.Status.Nodes, len(nodes.Items))
	}
	if got := c.Status.Allocatable.Memory().Value(); got != memory {
		t.Errorf("allocatable memory is %d, want %d", got, memory)
	}
	if !shipper.ConditionTrue(c.Status.Conditions, shipper.ClusterJoined) {
		t.Errorf("a cluster that is Ready is not Joined: %+v", c.Status.Conditions)
	}
}

func TestTheStatusOfAClusterHasThePropertiesOfItsConfigMaps(t *testing.T) {
	s := begin(t)
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: shipper.SystemNamespace, Name: "tier", Labels: map[string]string{shipper.PropertiesLabel: "true"},
		},
		Data: map[string]string{"tier": "1", "colour": "blue"},
	}
	s.must(world.clusters[east].Create(s.ctx, cm))
	var c *shipper.Cluster
	s.soon("the property does not appear", func() string {
		if c = s.propertiesAre(east, corev1.ConditionTrue, ""); len(c.Status.Properties) == 0 {
			return fmt.Sprintf("%+v", c.Status)
		}
		return ""
	})
	if diff := cmp.Diff(map[string]string{"tier": "1"}, c.Status.Properties); diff != "" {
		t.Errorf("properties: -want +got:\n%s", diff)
	}
	const want = "these properties are left out: colour of ConfigMap tier: not a quantity such as 5, 500m or 2Gi"
	if known := shipper.FindCondition(c.Status.Conditions, shipper.ClusterPropertiesKnown); known.Message != want {
		t.Errorf("the message is %q, want %q", known.Message, want)
	}
	s.must(world.clusters[east].Delete(s.ctx, cm))
	s.soon("the property stays", func() string {
		if c = s.propertiesAre(east, corev1.ConditionTrue, ""); len(c.Status.Properties) > 0 {
			return fmt.Sprintf("%+v", c.Status)
		}
		return ""
	})
}

// withoutNodes makes an account in the western cluster that has Shipper's rights there but that to Nodes, and returns its Secret.
func (s *fixture) withoutNodes(name string) *corev1.Secret {
	s.Helper()
	return s.limited(name, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "nodes") })
}

// limited makes an account in the western cluster that has the rights that `shipperctl clusters join` gives but some, and returns its
// Secret.
func (s *fixture) limited(name string, but func(rbacv1.PolicyRule) bool) *corev1.Secret {
	s.Helper()
	admin, meta := world.clusters[west], metav1.ObjectMeta{Name: name}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shipper.SystemNamespace, Name: name}}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: account.Namespace, Name: name}}
	role := &rbacv1.ClusterRole{}
	s.must(admin.Get(s.ctx, client.ObjectKey{Name: "shipper:application-cluster"}, role))
	rules := slices.DeleteFunc(role.Rules, but)
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	s.lendTo(west, account)
	s.lendTo(west, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules})
	s.lendTo(west, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
	ref.Kind, ref.Name = "Role", role.Name
	s.lendTo(west, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: name}, RoleRef: ref, Subjects: subjects,
	})
	request := &authenticationv1.TokenRequest{}
	s.must(admin.SubResource("token").Create(s.ctx, account, request))
	secret := clusterSecret(name, west)
	secret.Data["token"] = []byte(request.Status.Token)
	return secret
}

func TestAClusterWithoutTheRightToNodesIsReadyAndSaysSo(t *testing.T) {
	s := begin(t)
	const name = "unsighted"
	s.lend(s.withoutNodes(name))
	s.lend(aCluster(name, west))
	s.clusterIs(name, "")
	c := s.propertiesAre(name, corev1.ConditionFalse, shipper.PropertiesNotReadable)
	const want = "Shipper's account in this cluster may not list and watch nodes: run `shipperctl clusters join` again, or grant it by a " +
		`ClusterRole with the label shipper.booking.com/aggregate-to-application: "true" in that cluster`
	if known := shipper.FindCondition(c.Status.Conditions, shipper.ClusterPropertiesKnown); known.Message != want {
		t.Errorf("the message is %q, want %q", known.Message, want)
	}
	if c.Status.Nodes != nil || !shipper.ConditionTrue(c.Status.Conditions, shipper.ClusterReady) {
		t.Errorf("nodes are %v in %+v", c.Status.Nodes, c.Status.Conditions)
	}

	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.must(world.clusters[west].Get(s.ctx, client.ObjectKeyFromObject(role), role))
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list", "watch"}})
	s.must(world.clusters[west].Update(s.ctx, role))
	if c := s.propertiesAre(name, corev1.ConditionTrue, ""); c.Status.Nodes == nil {
		t.Error("the right is granted, and the Nodes are not counted")
	}
}

func TestAClusterThatLeavesWaitsUntilItsObjectsAreRemoved(t *testing.T) {
	s := begin(t, west, east)
	const name = "leaving"
	c := aCluster(name, west)
	c.Spec.OnLeave = shipper.OnLeaveRemove
	s.lend(clusterSecret(name, west))
	s.lend(c)
	s.clusterIs(name, "")
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, name, east)
	s.installed("web-1")
	s.must(s.management.Delete(s.ctx, c))
	s.soon("the Cluster does not say what it waits for", func() string {
		s.must(s.management.Get(s.ctx, client.ObjectKey{Name: name}, c))
		if leaving := shipper.FindCondition(c.Status.Conditions, shipper.ClusterLeaving); leaving != nil {
			return cmp.Diff(fmt.Sprintf("waits for 1 Releases: %s/web-1; `shipperctl clusters drain` lists the commands that move them, and "+
				"spec.onLeave: Keep leaves their objects there", s.namespace), leaving.Message)
		}
		return fmt.Sprintf("%+v", c.Status)
	})
	if !shipper.ConditionTrue(c.Status.Conditions, shipper.ClusterReady) || s.deployment(west, "web-1") == nil {
		t.Errorf("the Cluster is not Ready, or its objects are gone, before it is left: %+v", c.Status)
	}
	it := &shipper.InstallationTarget{ObjectMeta: s.meta("web-1")}
	s.change(it, func(client.Object) { it.Spec.Clusters = []string{east} })
	s.gone(c)
	if s.deployment(west, "web-1") != nil {
		t.Error("the Cluster is gone, and what was installed there is not")
	}
	if s.deployment(east, "web-1") == nil {
		t.Error("the objects in the other cluster are gone")
	}
}

func TestAClusterThatLeavesGoesWhenOnLeaveBecomesKeep(t *testing.T) {
	s := begin(t, west)
	const name = "keeping"
	c := aCluster(name, west)
	c.Spec.OnLeave = shipper.OnLeaveRemove
	s.lend(clusterSecret(name, west))
	s.lend(c)
	s.clusterIs(name, "")
	it := s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, name)
	s.installed("web-1")
	s.must(s.management.Delete(s.ctx, c))
	s.change(c, func(client.Object) { c.Spec.OnLeave = shipper.OnLeaveKeep })
	s.gone(c)
	if s.deployment(west, "web-1") == nil {
		t.Error("what was installed is gone")
	}
	s.must(s.management.Delete(s.ctx, it))
	s.gone(it)
}
