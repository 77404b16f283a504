// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/manifests"
	"shipper.dev/shipper/reconciler/member/rights"
)

// Granted is an object without a namespace that Shipper may place in a cluster.
type Granted struct {
	schema.GroupResource
	Name string
}

// String is as in clusterroles.rbac.authorization.k8s.io/monitoring.
func (g Granted) String() string { return rights.GrantName(g.GroupResource, g.Name) }

// rolePrefix and readPrefix begin the names of the two ClusterRoles of a grant.
const (
	rolePrefix = rights.GrantRolePrefix
	readPrefix = "shipper:grant-read:"
)

// roleName is the name of a ClusterRole. Names of roles have no slash.
func (g Granted) roleName(prefix string) string {
	return prefix + strings.ReplaceAll(g.String(), "/", ":")
}

// Grants lets Shipper place objects by name. Rules are rights that the granted roles and bindings of the cluster may give, those of earlier
// grants too.
func (a *Application) Grants(ctx context.Context, all []Granted, rules []rbacv1.PolicyRule, reason string) error {
	by, err := a.user(ctx)
	if err != nil {
		return err
	}
	objects, err := manifests.Objects(manifests.Grant)
	if err != nil {
		return err
	}
	record := map[string]any{
		shipper.GrantedByAnnotation: by, shipper.GrantedAtAnnotation: a.Clock.Now().UTC().Format(time.RFC3339),
		shipper.GrantReasonAnnotation: reason,
	}
	for _, o := range objects {
		if isBinding(o) {
			o.Object["subjects"] = []any{subject(a.ServiceAccount)}
		}
	}
	for _, g := range all {
		more, err := g.objects(rules, a.ServiceAccount, record)
		if err != nil {
			return err
		}
		objects = append(objects, more...)
	}
	for _, o := range objects {
		err := a.Report.Step("Creating a "+o.GetKind()+" called "+o.GetName(), func() (string, error) {
			if isBinding(o) {
				if err := keepSubjects(ctx, a.Client, o); err != nil {
					return "", err
				}
			}
			return apply(ctx, a.Client, o)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// NoGrants removes grants with the rules that they added. Objects that were placed by them stay.
func (a *Application) NoGrants(ctx context.Context, all []Granted) error {
	for _, g := range all {
		objects, err := g.objects(nil, a.ServiceAccount, nil)
		if err != nil {
			return err
		}
		slices.Reverse(objects)
		if err := a.remove(ctx, objects); err != nil {
			return err
		}
	}
	return nil
}

// user is the name of the administrator in the cluster.
func (a *Application) user(ctx context.Context) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := a.Client.Create(ctx, review); err != nil {
		return "", fmt.Errorf("asking cluster %s for your user name, to record it: %w", a.Name, err)
	}
	return review.Status.UserInfo.Username, nil
}

// objects are the roles and bindings of a grant. The granted account writes the one name; Shipper's own account, whose caches show whether
// the object is as it was placed, reads the kind.
func (g Granted) objects(rules []rbacv1.PolicyRule, account string, record map[string]any) ([]*unstructured.Unstructured, error) {
	of := rbacv1.PolicyRule{APIGroups: []string{g.Group}, Resources: []string{g.Resource}}
	write, read := of, of
	write.ResourceNames, write.Verbs = []string{g.Name}, []string{"get", "create", "patch", "delete"}
	read.Verbs = []string{"get", "list", "watch"}
	if g.Group == rbacv1.GroupName && g.Resource == "clusterrolebindings" { // which rights a binding gives
		read.Resources = append(read.Resources[:1:1], "clusterroles")
	}
	writes := []rbacv1.PolicyRule{write} // the first is no right that roles may give
	if g.Group == rbacv1.GroupName {
		writes = append(writes, rules...)
	}
	var out []*unstructured.Unstructured
	for _, one := range []struct {
		name, account string
		rules         []rbacv1.PolicyRule
	}{
		{g.roleName(readPrefix), account, []rbacv1.PolicyRule{read}},
		{g.roleName(rolePrefix), shipper.GrantedServiceAccount, writes},
	} {
		role, err := roleOf(one.name, one.rules, record)
		if err != nil {
			return nil, err
		}
		binding := grantObject("ClusterRoleBinding", one.name, record)
		binding.Object["roleRef"] = map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": one.name}
		binding.Object["subjects"] = []any{subject(one.account)}
		out = append(out, role, binding)
	}
	return out, nil
}

func roleOf(name string, rules []rbacv1.PolicyRule, record map[string]any) (*unstructured.Unstructured, error) {
	role := grantObject("ClusterRole", name, record)
	list := make([]any, len(rules))
	for i := range rules {
		rule, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rules[i])
		if err != nil {
			return nil, fmt.Errorf("encoding the rules of %s: %w", name, err)
		}
		list[i] = rule
	}
	role.Object["rules"] = list
	return role, nil
}

// grantObject is a role or a binding with the record of who granted it, when and why.
func grantObject(kind, name string, record map[string]any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"name": name, "labels": map[string]any{shipper.GrantLabel: ""},
	}}}
	if record != nil {
		out.Object["metadata"].(map[string]any)["annotations"] = runtime.DeepCopyJSON(record)
	}
	out.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
	return out
}

// subject is an account of Shipper in a cluster. Grants name the namespace of the anchors, which no flag changes.
func subject(account string) map[string]any {
	return map[string]any{"kind": rbacv1.ServiceAccountKind, "name": account, "namespace": shipper.SystemNamespace}
}
