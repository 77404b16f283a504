// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// ownRolePrefix begins the names of Shipper's own ClusterRoles and their bindings in application clusters.
const ownRolePrefix = "shipper:"

// skipOwnRights leaves out what changes the rights of Shipper's accounts in a cluster: with them, every tenant's chart would have more.
func skipOwnRights(o *unstructured.Unstructured) string {
	key := KeyOf(o)
	if key.Group != rbacv1.GroupName {
		return ""
	}
	isRole, isBinding := key.Kind == "ClusterRole", key.Kind == "RoleBinding" || key.Kind == "ClusterRoleBinding"
	switch {
	case isRole && o.GetLabels()[shipper.AggregateLabel] != "":
		return "its label " + shipper.AggregateLabel + " gives its rights to Shipper's own account, and so to every tenant's chart"
	case key.Namespace == "" && (isRole || isBinding) && strings.HasPrefix(key.Name, ownRolePrefix):
		return "names with the prefix " + ownRolePrefix + " are those of Shipper's own rights"
	case isBinding && bindsShipper(o):
		return "it gives rights to Shipper's own accounts, and so to every tenant's chart"
	}
	return ""
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
