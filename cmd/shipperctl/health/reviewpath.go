// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/certs/reviewpath"
)

// reviewPath reports whether others than administrators can find out under which path the webhook answers.
func (f *Fleet) reviewPath(ctx context.Context) []Finding {
	webhooks, findings := f.configured(ctx)
	if findings != nil {
		return nil // the check of webhooks says so
	}
	out := look(ctx, f, "Secret", certificateSecret, func(secret *corev1.Secret) []Finding { return pathFindings(secret, webhooks) })
	var roles rbacv1.ClusterRoleList
	if err := f.Client.List(ctx, &roles); err != nil {
		return append(out, unreadable("the list of ClusterRoles", err))
	}
	var bindings rbacv1.ClusterRoleBindingList
	if err := f.Client.List(ctx, &bindings); err != nil {
		return append(out, unreadable("the list of ClusterRoleBindings", err))
	}
	return append(out, readerFindings(roles.Items, bindings.Items, f.Namespace)...)
}

// pathFindings reports webhooks whose path lacks the token of the Secret. secret is nil when there is none.
func pathFindings(secret *corev1.Secret, webhooks []webhook) []Finding {
	if secret == nil || len(secret.Data[reviewpath.TokenKey]) == 0 {
		return nil // no webhook has run yet
	}
	var others []string
	for _, w := range webhooks {
		if _, token, _ := reviewpath.Split(w.path); token != string(secret.Data[reviewpath.TokenKey]) {
			others = append(others, w.name)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return []Finding{warning("the path in the webhook configuration is not the secret one for "+strings.Join(others, ", "),
		"a client that reaches the webhook's port can read by forged reviews what Releases and runs contain",
		"wait ten minutes: the webhook puts it back. If it stays so, keep the tool that applies the configuration from resetting the path")}
}

// readerFindings reports subjects besides administrators and Kubernetes' own that may read the webhook configurations.
func readerFindings(roles []rbacv1.ClusterRole, bindings []rbacv1.ClusterRoleBinding, namespace string) []Finding {
	reads := map[string]bool{}
	for _, role := range roles {
		reads[role.Name] = slices.ContainsFunc(role.Rules, readsConfigurations)
	}
	var readers []string
	for _, b := range bindings {
		if !reads[b.RoleRef.Name] {
			continue
		}
		for _, s := range b.Subjects {
			if !expected(b.RoleRef.Name, s, namespace) {
				name := strings.TrimPrefix(s.Namespace+"/"+s.Name, "/")
				readers = append(readers, fmt.Sprintf("%s %s by ClusterRoleBinding %s", s.Kind, name, b.Name))
			}
		}
	}
	if len(readers) == 0 {
		return nil
	}
	slices.Sort(readers)
	return []Finding{warning("others than administrators may read the webhook configurations, which contain the path of reviews: "+
		strings.Join(slices.Compact(readers), ", "),
		"a client that knows the path and reaches the webhook's port can read by forged reviews what Releases and runs contain",
		"take the right away, close the port by a NetworkPolicy, or require client certificates (docs/install.md)")}
}

// readsConfigurations reports whether a rule lets its subjects read one of Shipper's webhook configurations.
func readsConfigurations(rule rbacv1.PolicyRule) bool {
	has := func(in []string, any ...string) bool {
		return slices.ContainsFunc(in, func(s string) bool { return s == "*" || slices.Contains(any, s) })
	}
	return has(rule.APIGroups, "admissionregistration.k8s.io") && has(rule.Verbs, "get", "list", "watch") &&
		has(rule.Resources, "validatingwebhookconfigurations", "mutatingwebhookconfigurations") &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, shipper.GroupName))
}

// expected reports whether a subject is an administrator, a part of Kubernetes, or Shipper.
func expected(role string, s rbacv1.Subject, namespace string) bool {
	switch s.Kind {
	case rbacv1.GroupKind:
		everybody := []string{user.AllAuthenticated, user.AllUnauthenticated, "system:serviceaccounts"}
		all := slices.Contains(everybody, s.Name) || strings.HasPrefix(s.Name, "system:serviceaccounts:")
		return s.Name == user.SystemPrivilegedGroup || role == "cluster-admin" && !all
	case rbacv1.ServiceAccountKind:
		return s.Namespace == metav1.NamespaceSystem || s.Namespace == namespace || role == "cluster-admin"
	default:
		return role == "cluster-admin" && s.Name != user.Anonymous ||
			strings.HasPrefix(s.Name, "system:kube-") || strings.HasPrefix(s.Name, "system:serviceaccount:"+metav1.NamespaceSystem+":")
	}
}
