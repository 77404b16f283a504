// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// maxApprovers bounds the subjects that a finding lists.
const maxApprovers = 20

// grants are roles and their bindings, as the API server has them.
type grants struct {
	clusterRoles    []rbacv1.ClusterRole
	roles           []rbacv1.Role
	clusterBindings []rbacv1.ClusterRoleBinding
	bindings        []rbacv1.RoleBinding
}

// approvers reports the subjects that may both edit Applications and approve them.
func (f *Fleet) approvers(ctx context.Context) []Finding {
	var clusterRoles rbacv1.ClusterRoleList
	var roles rbacv1.RoleList
	var clusterBindings rbacv1.ClusterRoleBindingList
	var bindings rbacv1.RoleBindingList
	for _, list := range []struct {
		what string
		err  error
	}{
		{"ClusterRoles", f.Client.List(ctx, &clusterRoles)}, {"Roles", f.Client.List(ctx, &roles)},
		{"ClusterRoleBindings", f.Client.List(ctx, &clusterBindings)}, {"RoleBindings", f.Client.List(ctx, &bindings)},
	} {
		if list.err != nil {
			return []Finding{warning(fmt.Sprintf("%s cannot be listed: %v", list.what, list.err),
				"it is not known which users may both edit Applications and approve them", asAdministrator)}
		}
	}
	return approverFindings(grants{clusterRoles.Items, roles.Items, clusterBindings.Items, bindings.Items})
}

// held is what a subject may do.
type held struct{ edit, approve bool }

func (h held) and(other held) held { return held{h.edit || other.edit, h.approve || other.approve} }

// approverFindings is pure. Groups are subjects of their own: which users are in them is not known to the cluster. Administrators, who may
// do everything, are left out.
func approverFindings(all grants) []Finding {
	roles := map[string]held{} // by namespace/name, without a namespace for ClusterRoles
	for i := range all.clusterRoles {
		roles["/"+all.clusterRoles[i].Name] = heldBy(all.clusterRoles[i].Rules)
	}
	for i := range all.roles {
		roles[all.roles[i].Namespace+"/"+all.roles[i].Name] = heldBy(all.roles[i].Rules)
	}
	subjects := map[string]map[string]held{} // by subject and namespace, empty for all
	add := func(namespace string, ref rbacv1.RoleRef, to []rbacv1.Subject) {
		of := namespace
		if ref.Kind == "ClusterRole" {
			of = ""
		}
		h := roles[of+"/"+ref.Name]
		if h == (held{}) {
			return
		}
		for _, s := range to {
			name := s.Kind + " " + strings.TrimPrefix(s.Namespace+"/"+s.Name, "/")
			if subjects[name] == nil {
				subjects[name] = map[string]held{}
			}
			subjects[name][namespace] = subjects[name][namespace].and(h)
		}
	}
	for i := range all.clusterBindings {
		add("", all.clusterBindings[i].RoleRef, all.clusterBindings[i].Subjects)
	}
	for i := range all.bindings {
		add(all.bindings[i].Namespace, all.bindings[i].RoleRef, all.bindings[i].Subjects)
	}
	var both []string
	for _, name := range slices.Sorted(maps.Keys(subjects)) {
		if where := whereBoth(subjects[name]); where != "" {
			both = append(both, name+" "+where)
		}
	}
	if len(both) == 0 {
		return nil
	}
	if n := len(both); n > maxApprovers {
		both = append(both[:maxApprovers], fmt.Sprintf("and %d more", n-maxApprovers))
	}
	return []Finding{warning("these may both edit Applications and approve them:\n"+strings.Join(both, "\n"),
		"such a user can change an Application as a ServiceAccount, and approve the change, where allowServiceAccounts is set or the "+
			"ServiceAccount is one of another namespace", "bind edit and approve to different people: docs/security.md, Left to you")}
}

// whereBoth is where a subject holds both; empty if nowhere.
func whereBoth(in map[string]held) string {
	if everywhere := in[""]; everywhere.edit && everywhere.approve {
		return "everywhere"
	}
	var out []string
	for _, namespace := range slices.Sorted(maps.Keys(in)) {
		if h := in[namespace].and(in[""]); namespace != "" && h.edit && h.approve {
			out = append(out, namespace)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "in " + strings.Join(out, ", ")
}

// heldBy is what rules grant; nothing for those of administrators.
func heldBy(rules []rbacv1.PolicyRule) (out held) {
	for _, rule := range rules {
		if slices.Contains(rule.APIGroups, "*") && slices.Contains(rule.Resources, "*") && slices.Contains(rule.Verbs, "*") {
			return held{}
		}
		if !has(rule.APIGroups, shipper.GroupName) {
			continue
		}
		approvable := func(resource string) bool {
			kind, _, _ := strings.Cut(resource, "/")
			return kind == "releases" || kind == "shipyards" || kind == "*"
		}
		out = out.and(held{
			edit:    has(rule.Resources, "applications") && (has(rule.Verbs, "update") || has(rule.Verbs, "patch")),
			approve: slices.ContainsFunc(rule.Resources, approvable) && has(rule.Verbs, "approve"),
		})
	}
	return out
}

// has reports whether a list of a rule has a name, or all names.
func has(list []string, name string) bool {
	return slices.Contains(list, name) || slices.Contains(list, "*")
}
