// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/manifests"
)

// reconcilerVariable is the variable of the policy with the name of Shipper's account.
const reconcilerVariable = "reconciler"

// policies writes what holds RolloutBlocks inside the API server, with no webhook at all.
func (m *Management) policies(ctx context.Context) error {
	objects, err := manifests.Objects(manifests.Policy)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := m.place(o); err != nil {
			return err
		}
		err := m.Report.Step("Creating a "+o.GetKind()+" called "+o.GetName(), func() (string, error) {
			how, err := apply(ctx, m.Client, o)
			return string(how), err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// place puts the names of this installation in the place of the usual ones.
func (m *Management) place(o *unstructured.Unstructured) error {
	if o.GetKind() == policyBinding {
		ref, _, err := unstructured.NestedMap(o.Object, "spec", "paramRef")
		if err != nil || ref["namespace"] != shipper.GlobalBlocksNamespace {
			return err
		}
		return unstructured.SetNestedField(o.Object, m.GlobalBlocksNamespace, "spec", "paramRef", "namespace")
	}
	variable, err := field(o, "variables", reconcilerVariable)
	if err != nil {
		return err
	}
	variable["expression"] = quote(serviceaccount.MakeUsername(m.Namespace, m.ServiceAccount))
	constraints, _, err := unstructured.NestedMap(o.Object, "spec", "matchConstraints")
	if err != nil {
		return fmt.Errorf("reading policy %s: %w", o.GetName(), err)
	}
	if err := exempt(constraints, m.Namespace); err != nil {
		return err
	}
	return unstructured.SetNestedMap(o.Object, constraints, "spec", "matchConstraints")
}
