// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/member/rights"
)

// readRules reads the rules of the ClusterRoles in a file, also of those in Envelopes.
func readRules(in io.Reader, path string) ([]rbacv1.PolicyRule, error) {
	var raw []byte
	var err error
	if path == "-" {
		raw, err = io.ReadAll(in)
	} else {
		raw, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("--rules: %w", err)
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	var out []rbacv1.PolicyRule
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("--rules: %s: %w", path, err)
		}
		for _, one := range append(manifestsIn(object), object) {
			rules, err := rulesOf(one)
			if err != nil {
				return nil, fmt.Errorf("--rules: %s: %w", path, err)
			}
			out = append(out, rules...)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("--rules: %s has no ClusterRole with rules", path)
	}
	return out, nil
}

// manifestsIn are those of an Envelope.
func manifestsIn(object *unstructured.Unstructured) []*unstructured.Unstructured {
	if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: shipper.GroupName, Kind: "Envelope"}) {
		return nil
	}
	all, _, _ := unstructured.NestedSlice(object.Object, "spec", "manifests")
	var out []*unstructured.Unstructured
	for _, one := range all {
		if content, is := one.(map[string]any); is {
			out = append(out, &unstructured.Unstructured{Object: content})
		}
	}
	return out
}

// rulesOf are the rules of a ClusterRole; none of other objects.
func rulesOf(object *unstructured.Unstructured) ([]rbacv1.PolicyRule, error) {
	if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRole"}) {
		return nil, nil
	}
	role := &rbacv1.ClusterRole{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
		return nil, fmt.Errorf("ClusterRole %s: %w", object.GetName(), err)
	}
	if role.AggregationRule != nil {
		return nil, fmt.Errorf("ClusterRole %s has an aggregationRule: its rights change with other roles, so list the rules", role.Name)
	}
	if label := rights.AggregateLabel(role.Labels); label != "" {
		return nil, fmt.Errorf("ClusterRole %s has the label %s, which adds its rules to those of another ClusterRole, and no grant covers "+
			"that: leave the label out, here and in what is placed", role.Name, label)
	}
	for i := range role.Rules {
		if why := rights.Unbounded(&role.Rules[i]); why != "" {
			return nil, fmt.Errorf("ClusterRole %s: rules[%d] %s", role.Name, i, why)
		}
	}
	return role.Rules, nil
}
