// SPDX-License-Identifier: Apache-2.0

package health

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// ProbeName is that of the objects that are sent. They are never stored.
const ProbeName = "shipperctl-probe"

// probeRequest is an object that one of Shipper's webhooks refuses, in every state of the cluster.
type probeRequest struct {
	object *unstructured.Unstructured
	// webhooks are the names of those that may refuse it.
	webhooks []string
	// policyFirst is true where the API server's own policy refuses, while a block is in effect, what the mutating webhook lets
	// pass: then the other kinds have to prove that the webhook answers.
	policyFirst bool
}

// probeRequests has one for each kind that the webhooks judge. The schema of each kind admits its object.
func probeRequests() []probeRequest {
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
	release := probeObject("Release", map[string]any{"environment": environment, "targetStep": int64(0)}, "release", "mutate.release")
	release.policyFirst = true
	return []probeRequest{
		// It is refused before its chart is resolved: there is no Release to roll back to.
		probeObject("Application", map[string]any{"template": environment, "rollbackTo": map[string]any{"release": "none"}}, "mutate.application"),
		release,
		probeObject("InstallationTarget", map[string]any{"clusters": []any{}, "canOverride": true}, "installationtarget"),
		probeObject("CapacityTarget", none, "capacitytarget"),
		probeObject("TrafficTarget", none, "traffictarget"),
		probeObject("Cluster", map[string]any{"region": " "}, "cluster"),
		probeObject("RolloutBlock", map[string]any{"message": " "}, "rolloutblock"),
	}
}

func probeObject(kind string, spec map[string]any, webhooks ...string) probeRequest {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(shipper.GroupVersion.WithKind(kind))
	o.SetName(ProbeName)
	if kind != "Cluster" {
		o.SetNamespace(metav1.NamespaceDefault) // Shipper's own namespace is exempt
	}
	for i := range webhooks {
		webhooks[i] += "." + shipper.GroupName
	}
	return probeRequest{object: o.DeepCopy(), webhooks: webhooks}
}
