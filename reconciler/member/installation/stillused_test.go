// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestPodsOfOthersKeepNothing: a target that goes waits for Pods of its own workloads in place alone, not for those of hooks, which go with
// it, nor for those of others.
func TestPodsOfOthersKeepNothing(t *testing.T) {
	for sentence, tc := range map[string]struct {
		workload, kind, owner string
		want                  bool
	}{
		"of the StatefulSet":          {"StatefulSet", "StatefulSet", "db", true},
		"of another StatefulSet":      {"StatefulSet", "StatefulSet", "db-0", false},
		"of a DaemonSet of that name": {"StatefulSet", "DaemonSet", "db", false},
		"of the Deployment":           {"Deployment", "ReplicaSet", "db-7c9f", true},
		"of another Deployment":       {"Deployment", "ReplicaSet", "db-2-7c9f", false},
		"of a ReplicaSet of others":   {"Deployment", "ReplicaSet", "db-blue", false},
		"of a hook":                   {"StatefulSet", "Job", "db", false},
		"of nothing":                  {"StatefulSet", "", "", false},
	} {
		pod := &unstructured.Unstructured{Object: map[string]any{}}
		pod.SetLabels(map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "7c9f"})
		if controller := true; tc.kind != "" {
			pod.SetOwnerReferences([]metav1.OwnerReference{{Kind: tc.kind, Name: tc.owner, Controller: &controller}})
		}
		if got := runs(item{Kind: tc.workload, Name: "db"}, pod); got != tc.want {
			t.Errorf("a Pod %s: %t", sentence, got)
		}
	}
}
