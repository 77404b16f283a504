// SPDX-License-Identifier: Apache-2.0

package probe

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Name is that of the objects that are sent. They are never stored.
const Name = "shipperctl-probe"

// request is an object that one of Shipper's webhooks refuses, in every state of the cluster.
type request struct {
	object *unstructured.Unstructured
	// webhooks are the names of those that may refuse it.
	webhooks []string
	// policyFirst is true where the API server's own policy refuses, while a block is in effect, what the mutating webhook lets
	// pass: then the other kinds have to prove that the webhook answers.
	policyFirst bool
}

// requests has one for each kind that the webhooks judge. The schema of each kind admits its object.
func requests() []request {
	environment := map[string]any{
		"chart":               map[string]any{"name": "probe", "version": "0.0.1", "repoUrl": "https://charts.invalid"},
		"clusterRequirements": map[string]any{"regions": []any{map[string]any{"name": "probe"}}},
		"strategy": map[string]any{"steps": []any{map[string]any{
			"name":     "full on",
			"capacity": map[string]any{"contender": int64(100), "incumbent": int64(0)},
			"traffic":  map[string]any{"contender": int64(100), "incumbent": int64(0)},
		}}},
		"values": map[string]any{},
	}
	none := map[string]any{"clusters": []any{}}
	release := of("Release", map[string]any{"environment": environment, "targetStep": int64(0)}, "release", "mutate.release")
	release.policyFirst = true
	return []request{
		// It is refused before its chart is resolved: there is no Release to roll back to.
		of("Application", map[string]any{"template": environment, "rollbackTo": map[string]any{"release": "none"}}, "mutate.application"),
		release,
		of("InstallationTarget", map[string]any{"clusters": []any{}, "canOverride": true}, "installationtarget"),
		of("CapacityTarget", none, "capacitytarget"),
		of("TrafficTarget", none, "traffictarget"),
		of("Cluster", map[string]any{"region": " "}, "cluster"),
		of("RolloutBlock", map[string]any{"message": " "}, "rolloutblock"),
	}
}

func of(kind string, spec map[string]any, webhooks ...string) request {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(shipper.GroupVersion.WithKind(kind))
	o.SetName(Name)
	if kind != "Cluster" {
		o.SetNamespace(metav1.NamespaceDefault) // Shipper's own namespace is exempt
	}
	for i := range webhooks {
		webhooks[i] += "." + shipper.GroupName
	}
	return request{object: o.DeepCopy(), webhooks: webhooks}
}
