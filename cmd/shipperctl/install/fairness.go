// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/runtime"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/manifests"
)

// fairness writes how API servers share out Shipper's requests. An existing priority level stays: its shares belong to the administrator.
func (m *Management) fairness(ctx context.Context) error {
	objects, err := manifests.FlowControl()
	if err != nil {
		return err
	}
	for _, o := range objects {
		write := ensure
		if o.GetKind() == flowSchema {
			write = apply
			if err := m.setSubjects(o.Object); err != nil {
				return fmt.Errorf("reading manifests: %s %s: %w", o.GetKind(), o.GetName(), err)
			}
		}
		err := m.Report.Step("Creating a "+o.GetKind()+" called "+o.GetName(), func() (string, error) { return write(ctx, m.Client, o) })
		if err != nil {
			return err
		}
	}
	return nil
}

// flowSchema is the kind that says whose requests go where.
const flowSchema = "FlowSchema"

// setSubjects replaces the usual account and namespace in a FlowSchema by those of this installation.
func (m *Management) setSubjects(object map[string]any) error {
	schema := &flowcontrolv1.FlowSchema{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, schema, true); err != nil {
		return err
	}
	for _, rule := range schema.Spec.Rules {
		for _, subject := range rule.Subjects {
			subject.ServiceAccount.Namespace, subject.ServiceAccount.Name = m.Namespace, m.ServiceAccount
		}
		for _, resources := range rule.ResourceRules {
			for i, namespace := range resources.Namespaces {
				if namespace == shipper.SystemNamespace {
					resources.Namespaces[i] = m.Namespace
				}
			}
		}
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(schema)
	if err != nil {
		return err
	}
	object["spec"] = raw["spec"]
	return nil
}
