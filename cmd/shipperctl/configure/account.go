// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/manifests"
)

// account is who Shipper is in a cluster, with what it may do there.
type account struct {
	client          client.Client
	report          *Report
	domain          string // shipper.RBACManagement or shipper.RBACApplication
	namespace, name string
}

// serviceAccount makes the account.
func (a account) serviceAccount(ctx context.Context) error {
	return a.report.Step("Creating a service account called "+a.name, func() (string, error) {
		objects, err := a.objects()
		if err != nil {
			return "", err
		}
		for _, o := range objects {
			if o.GetKind() == "ServiceAccount" {
				how, err := ensure(ctx, a.client, o)
				return string(how), err
			}
		}
		return "", fmt.Errorf("the manifests have no account for %s clusters", a.domain)
	})
}

// rules makes the roles and binds them to the account. They are updated when they differ: an upgrade may need more, and
// should keep no more than it needs.
func (a account) rules(ctx context.Context) error {
	objects, err := a.objects()
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetKind() == "ServiceAccount" {
			continue
		}
		err := a.report.Step("Creating a "+o.GetKind()+" called "+o.GetName(), func() (string, error) {
			how, err := apply(ctx, a.client, o)
			return string(how), err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// objects returns the account, roles and bindings of the domain, in this account's namespace and for its name.
func (a account) objects() ([]*unstructured.Unstructured, error) {
	all, err := manifests.Objects(manifests.RBAC)
	if err != nil {
		return nil, err
	}
	var mine []*unstructured.Unstructured
	for _, o := range all {
		if o.GetLabels()[shipper.RBACDomainLabel] != a.domain {
			continue
		}
		if o.GetNamespace() != "" {
			o.SetNamespace(a.namespace)
		}
		if o.GetKind() == "ServiceAccount" {
			o.SetName(a.name)
		}
		if o.Object["roleRef"] != nil {
			o.Object["subjects"] = []any{
				map[string]any{"kind": "ServiceAccount", "name": a.name, "namespace": a.namespace},
			}
		}
		mine = append(mine, o)
	}
	return mine, nil
}
