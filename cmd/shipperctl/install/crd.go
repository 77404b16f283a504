// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/manifests"
)

// customResourceDefinitions registers the eight kinds and waits until they are served.
func (m *Management) customResourceDefinitions(ctx context.Context) error {
	return m.Report.Step("Registering or updating custom resource definitions", func() (string, error) {
		definitions, err := manifests.Objects(manifests.CRD)
		if err != nil {
			return "", err
		}
		answer := "already exist. Skipping"
		for _, crd := range definitions {
			// Kinds registered by the original kept unknown fields, which cannot stay so in apiextensions.k8s.io/v1.
			if err := unstructured.SetNestedField(crd.Object, false, "spec", "preserveUnknownFields"); err != nil {
				return "", err
			}
			how, err := apply(ctx, m.Client, crd)
			if err != nil {
				return "", fmt.Errorf("applying %s: %w", crd.GetName(), err)
			}
			if how != unchanged {
				answer = "done"
			}
		}
		for _, crd := range definitions {
			if err := m.served(ctx, crd.GetName()); err != nil {
				return "", err
			}
		}
		return answer, nil
	})
}

// served waits until a kind is served.
func (m *Management) served(ctx context.Context, name string) error {
	like := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	var last apiextensionsv1.CustomResourceDefinition
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	ok, err := await(ctx, m.Client, like, list, m.Patience, func(o runtime.Object) bool {
		crd, is := o.(*apiextensionsv1.CustomResourceDefinition)
		if !is {
			return false
		}
		last = *crd
		return established(crd)
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", name, err)
	}
	if !ok {
		return cli.WithCode(cli.TimedOut, fmt.Errorf("%s is not served after %s: %s", name, m.Patience, whyNot(&last)))
	}
	return nil
}

// established reports whether a kind is served.
func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// whyNot returns what the cluster says about a kind that is not served.
func whyNot(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, c := range crd.Status.Conditions {
		if c.Status == apiextensionsv1.ConditionFalse && c.Message != "" {
			return fmt.Sprintf("%s: %s", c.Reason, c.Message)
		}
	}
	return "the cluster gives no reason; look at kubectl get crd -o yaml"
}
