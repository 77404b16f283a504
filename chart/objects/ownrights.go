// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// ownRolePrefix begins the names of Shipper's own ClusterRoles and their bindings in application clusters.
const ownRolePrefix = "shipper:"

// grantRolePrefix begins the names of the ClusterRoles by which administrators grant objects by name.
const grantRolePrefix = ownRolePrefix + "grant"

// skipOwnRights leaves out what changes the rights of Shipper's accounts in a cluster, because every tenant's chart would have more, and
// what gives the rights of grants to others. It also leaves out webhooks and policies with names of Shipper's own.
func skipOwnRights(o *unstructured.Unstructured) string {
	key := KeyOf(o)
	isRole, isBinding := key.Kind == "ClusterRole", key.Kind == "RoleBinding" || key.Kind == "ClusterRoleBinding"
	switch {
	case IsOwnAdmission(key.Group, key.Name):
		return "names that end in " + shipper.GroupName + " are those of Shipper's own webhooks and policies"
	case key.Group != rbacv1.GroupName:
		return ""
	case isRole && o.GetLabels()[shipper.AggregateLabel] != "":
		return "its label " + shipper.AggregateLabel + " gives its rights to Shipper's own account, and so to every tenant's chart"
	case key.Namespace == "" && (isRole || isBinding) && strings.HasPrefix(key.Name, ownRolePrefix):
		return "names with the prefix " + ownRolePrefix + " are those of Shipper's own rights"
	case isBinding && bindsGrant(o):
		return "its roleRef gives its subjects the right to write what administrators have granted to Shipper by name"
	case isBinding && bindsShipper(o):
		return "it gives rights to Shipper's own accounts, and so to every tenant's chart"
	}
	return ""
}

// IsOwnAdmission reports whether a name in a group is that of a webhook configuration or an admission policy of Shipper.
func IsOwnAdmission(group, name string) bool {
	return group == admissionregistrationv1.GroupName && strings.HasSuffix("."+name, "."+shipper.GroupName)
}

// bindsGrant reports whether a binding gives the rights of a grant. The API server admits it, because the granted account has them.
func bindsGrant(binding *unstructured.Unstructured) bool {
	role, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
	return strings.HasPrefix(role, grantRolePrefix)
}

// bindsShipper reports whether a binding names accounts of Shipper's namespace.
func bindsShipper(binding *unstructured.Unstructured) bool {
	subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
	return slices.ContainsFunc(subjects, func(s any) bool {
		subject, _ := s.(map[string]any)
		name, _ := subject["name"].(string)
		namespace, _ := subject["namespace"].(string)
		switch subject["kind"] {
		case rbacv1.ServiceAccountKind:
			return namespace == shipper.SystemNamespace
		case rbacv1.UserKind:
			return strings.HasPrefix(name, serviceaccount.MakeUsername(shipper.SystemNamespace, ""))
		case rbacv1.GroupKind:
			return name == serviceaccount.MakeNamespaceGroupName(shipper.SystemNamespace)
		}
		return false
	})
}
