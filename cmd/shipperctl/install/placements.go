// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/manifests"
)

// AllPlaced in Management.Placements is every namespace, and objects without one.
const AllPlaced = "*"

// bindPlacements binds the roles for what Applications with resources select. Bindings that are there stay, with their other subjects.
func (m *Management) bindPlacements(ctx context.Context) error {
	for _, namespace := range m.Placements {
		roles := []string{shipper.ResourceSelectorRole, shipper.ValuesKeeper}
		if namespace == AllPlaced {
			// Secrets are kept in the namespaces of Applications alone, which are named.
			namespace, roles = "", roles[:1]
		}
		for _, role := range roles {
			if err := m.bind(ctx, role, namespace); err != nil {
				return err
			}
		}
	}
	return nil
}

// bind binds a ClusterRole to Shipper's account in a namespace; everywhere if namespace is empty.
func (m *Management) bind(ctx context.Context, role, namespace string) error {
	binding := &unstructured.Unstructured{Object: map[string]any{
		"roleRef": map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": role},
		"subjects": []any{
			map[string]any{"kind": rbacv1.ServiceAccountKind, "name": m.ServiceAccount, "namespace": m.Namespace},
		},
	}}
	binding.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"))
	title := "Binding " + role + " to " + m.ServiceAccount + " in namespace " + namespace
	if namespace == "" {
		binding.SetKind("ClusterRoleBinding")
		title = "Binding " + role + " to " + m.ServiceAccount + " everywhere"
	}
	binding.SetName(role)
	binding.SetNamespace(namespace)
	return m.Report.Step(title, func() (string, error) {
		if err := keepSubjects(ctx, m.Client, binding); err != nil {
			return "", err
		}
		return apply(ctx, m.Client, binding)
	})
}

// Placements lets Shipper's account write Namespaces and their limits in the cluster.
func (a *Application) Placements(ctx context.Context) error {
	roles, err := manifests.Objects(manifests.Placement)
	if err != nil {
		return err
	}
	for _, role := range roles {
		err := a.Report.Step("Creating a "+role.GetKind()+" called "+role.GetName(), func() (string, error) { return apply(ctx, a.Client, role) })
		if err != nil {
			return err
		}
	}
	a.Report.Printf("Note: every chart and Envelope of every tenant that may write Applications can now write Namespaces, ResourceQuotas "+
		"and LimitRanges in cluster %s", a.Name)
	return nil
}

// NoPlacements takes from Shipper's account what Placements gives.
func (a *Application) NoPlacements(ctx context.Context) error {
	roles, err := manifests.Objects(manifests.Placement)
	if err != nil {
		return err
	}
	return a.remove(ctx, roles)
}

// remove deletes objects one after another. What is gone already is no error.
func (a *Application) remove(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		err := a.Report.Step("Deleting the "+o.GetKind()+" called "+o.GetName(), func() (string, error) {
			if err := a.Client.Delete(ctx, o); apierrors.IsNotFound(err) {
				return "there is none. Skipping", nil
			} else if err != nil {
				return "", err
			}
			return "done", nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
