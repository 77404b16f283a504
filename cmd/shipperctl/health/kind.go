// SPDX-License-Identifier: Apache-2.0

package health

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// kindFindings compares a CustomResourceDefinition with that of the manifests. live is nil when there is none.
func kindFindings(want, live *unstructured.Unstructured) []Finding {
	const needed = "Shipper does not work without any of its kinds"
	if live == nil {
		return []Finding{{
			Level: Broken, What: "there is no CustomResourceDefinition " + want.GetName(), Why: needed, Do: setUp,
		}}
	}
	var out []Finding
	if !served(live) {
		out = append(out, Finding{
			Level: Broken, What: "the CustomResourceDefinition " + want.GetName() + " is not served", Why: needed,
			Do: "look at its conditions: kubectl get crd " + want.GetName() + " -o yaml",
		})
	}
	if !contains(live.Object["spec"], want.Object["spec"]) {
		out = append(out, Finding{
			Level: Broken, What: "the CustomResourceDefinition " + want.GetName() + " is not that of this shipperctl",
			Why: "API servers drop fields that it does not have",
			Do:  "with the shipperctl of the Shipper that runs: " + setUp,
		})
	}
	if keeps, _, _ := unstructured.NestedBool(live.Object, "spec", "preserveUnknownFields"); keeps {
		out = append(out, Finding{
			Level: Broken, What: "the CustomResourceDefinition " + want.GetName() + " keeps unknown fields, as the original's did",
			Why: "misspelled fields are taken without a word", Do: setUp,
		})
	}
	return out
}

// served reports whether a kind is Established.
func served(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, item := range conditions {
		if c, is := item.(map[string]any); is && c["type"] == "Established" {
			return c["status"] == "True"
		}
	}
	return false
}

// contains reports whether all that is wanted is there. API servers add defaults to it.
func contains(is, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, same := is.(map[string]any)
		if !same {
			return false
		}
		for key, value := range want {
			if !contains(have[key], value) {
				return false
			}
		}
		return true
	case []any:
		have, same := is.([]any)
		if !same || len(have) != len(want) {
			return false
		}
		for i := range want {
			if !contains(have[i], want[i]) {
				return false
			}
		}
		return true
	case int64:
		if have, float := is.(float64); float {
			return have == float64(want)
		}
	case float64:
		if have, whole := is.(int64); whole {
			return float64(have) == want
		}
	}
	return reflect.DeepEqual(is, want)
}
