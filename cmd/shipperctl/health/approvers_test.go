// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/manifests"
)

func TestUsersWhoEditAndApproveAreListed(t *testing.T) {
	clusterRole := func(name string, groups, resources, verbs []string) rbacv1.ClusterRole {
		return rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
			{APIGroups: groups, Resources: resources, Verbs: verbs},
		}}
	}
	ours := []string{shipper.GroupName}
	edit := clusterRole("edit", ours, []string{"applications"}, []string{"patch"})
	approver := clusterRole("approver", ours, []string{"releases"}, []string{"approve"})
	stage := clusterRole("stage", ours, []string{"shipyards/production"}, []string{"approve"})
	admin := clusterRole("cluster-admin", []string{"*"}, []string{"*"}, []string{"*"})
	own := rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "approver"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: ours, Resources: []string{"*"}, Verbs: []string{"*"},
		}},
	}
	user := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: "User", Name: name} }
	everywhere := func(role string, to ...rbacv1.Subject) rbacv1.ClusterRoleBinding {
		return rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role}, Subjects: to}
	}
	in := func(namespace, kind, role string, to ...rbacv1.Subject) rbacv1.RoleBinding {
		return rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, RoleRef: rbacv1.RoleRef{Kind: kind, Name: role}, Subjects: to,
		}
	}
	all := grants{
		clusterRoles: []rbacv1.ClusterRole{edit, approver, stage, admin}, roles: []rbacv1.Role{own},
		clusterBindings: []rbacv1.ClusterRoleBinding{
			everywhere("approver", user("ann"), user("eve")), everywhere("cluster-admin", user("root")), everywhere("edit", user("eve")),
		},
		bindings: []rbacv1.RoleBinding{
			in("shop", "ClusterRole", "edit", user("ann"), user("bob"), user("fay")), in("play", "ClusterRole", "edit", user("ann")),
			in("play", "ClusterRole", "stage", user("bob")), in("shop", "ClusterRole", "stage", rbacv1.Subject{Kind: "Group", Name: "leads"}),
			in("shop", "Role", "approver", rbacv1.Subject{Kind: "ServiceAccount", Namespace: "ci", Name: "bot"}),
			in("play", "Role", "approver", user("gil")), in("shop", "ClusterRole", "gone", user("hal")),
		},
	}
	got := approverFindings(all)
	const want = "these may both edit Applications and approve them:\nServiceAccount ci/bot in shop\nUser ann in play, shop\n" +
		"User eve everywhere"
	if len(got) != 1 || got[0].Level != levelWarning || cmp.Diff(want, got[0].What) != "" {
		t.Errorf("found %+v", got)
	}
	all.clusterBindings, all.bindings = all.clusterBindings[1:2], all.bindings[1:4]
	if got := approverFindings(all); got != nil {
		t.Errorf("without a user who holds both: %+v", got)
	}
}

// The roles of the manifests are meant to be bound to different people.
func TestNoRoleForPeopleHasBoth(t *testing.T) {
	for name, want := range map[string]held{
		"shipper:edit": {edit: true}, "shipper:approver": {approve: true}, "shipper:sre": {}, "shipper:promoter": {}, "shipper:view": {},
	} {
		o, err := manifests.Object(manifests.RBAC, "ClusterRole", name)
		if err != nil {
			t.Fatal(err)
		}
		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
			t.Fatal(err)
		}
		if got := heldBy(role.Rules); got != want {
			t.Errorf("%s holds %+v", name, got)
		}
	}
}
