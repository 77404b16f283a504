// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"errors"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/member/rights"
	"shipper.dev/shipper/reconciler/retry"
)

// clusterRoleKind is the kind whose rules a grant bounds.
var clusterRoleKind = rbacv1.SchemeGroupVersion.WithKind("ClusterRole")

// errLacksRules is the error of a role or binding with rules that no --rules of the grants in a cluster contain.
var errLacksRules = errors.New("it gives rights that the grants of the cluster lack")

// giveBoundedRights refuses roles, and bindings of roles, with rules that no --rules of the cluster's grants contain. The API server admits
// some of them: it lets the granted account give all that it has, and so the right to write what other grants name.
func giveBoundedRights(ctx context.Context, live func() client.Reader, wanted *unstructured.Unstructured) error {
	role, of := wanted, ""
	switch gvk := wanted.GroupVersionKind(); gvk.GroupKind() {
	case clusterRoleKind.GroupKind():
	case rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding").GroupKind():
		name, _, _ := unstructured.NestedString(wanted.Object, "roleRef", "name")
		role, of = fromContent(map[string]any{}), fmt.Sprintf("it binds the ClusterRole %q, whose ", name)
		role.SetGroupVersionKind(clusterRoleKind)
		err := live().Get(ctx, client.ObjectKey{Name: name}, role)
		if apierrors.IsNotFound(err) { // the API server refuses such a binding, for the same reason or for lack of a grant
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the ClusterRole %q that it binds: %w", name, err)
		}
	default:
		return nil
	}
	rules, err := bounded(role, of)
	if err == nil && role == wanted {
		err = aggregated(ctx, live(), role)
	}
	if err != nil || len(rules) == 0 {
		return err
	}
	given, err := grantedRules(ctx, live())
	if err == nil && rights.Uncovered(given, rules) >= 0 {
		err = errLacksRules
	}
	return err
}

// grantedRules are the --rules of all grants in a cluster, without the rights to write what is granted.
func grantedRules(ctx context.Context, live client.Reader) ([]rbacv1.PolicyRule, error) {
	roles, err := listRoles(ctx, live, client.HasLabels{shipper.GrantLabel})
	if err != nil {
		return nil, fmt.Errorf("reading the grants: %w", err)
	}
	var out []rbacv1.PolicyRule
	for i := range roles {
		if role := &roles[i]; strings.HasPrefix(role.Name, rights.GrantRolePrefix) && len(role.Rules) > 0 {
			out = append(out, role.Rules[1:]...)
		}
	}
	return out, nil
}

// aggregated returns an error if the labels of a ClusterRole add its rules to another one, which may be bound to anyone.
func aggregated(ctx context.Context, live client.Reader, role *unstructured.Unstructured) error {
	var roles []rbacv1.ClusterRole
	if rights.AggregateLabel(role.GetLabels()) == "" {
		var err error
		if roles, err = listRoles(ctx, live); err != nil {
			return fmt.Errorf("comparing its labels: %w", err)
		}
	}
	if why := rights.Aggregated(role.GetLabels(), roles); why != "" {
		return uncovered("%s", why)
	}
	return nil
}

// listRoles are the ClusterRoles of a cluster.
func listRoles(ctx context.Context, live client.Reader, which ...client.ListOption) ([]rbacv1.ClusterRole, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleList"))
	if err := live.List(ctx, list, which...); err != nil {
		return nil, fmt.Errorf("listing ClusterRoles: %w", err)
	}
	out := make([]rbacv1.ClusterRole, len(list.Items))
	for i := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &out[i]); err != nil {
			return nil, fmt.Errorf("reading ClusterRole %s: %w", list.Items[i].GetName(), err)
		}
	}
	return out, nil
}

// uncovered is the error of a role or binding that no grant may cover.
func uncovered(format string, args ...any) error {
	return &problem{shipper.NotGranted, retry.Retry, fmt.Sprintf(format, args...) +
		"; no grant covers that: have an administrator of the cluster write it, and leave it out here"}
}

// bounded returns the rules of a ClusterRole, or an error with this beginning for the first one that no grant may contain.
func bounded(object *unstructured.Unstructured, beginning string) ([]rbacv1.PolicyRule, error) {
	refused := func(format string, args ...any) ([]rbacv1.PolicyRule, error) {
		return nil, uncovered("%s%s", beginning, fmt.Sprintf(format, args...))
	}
	role := &rbacv1.ClusterRole{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
		return refused("content cannot be read (%s)", retry.Within(err, maxRefusal))
	}
	if role.AggregationRule != nil {
		return refused("rules change with those of other roles: it has an aggregationRule")
	}
	for i := range role.Rules {
		if why := rights.Unbounded(&role.Rules[i]); why != "" {
			return refused("rules[%d] %s", i, why)
		}
	}
	return role.Rules, nil
}
