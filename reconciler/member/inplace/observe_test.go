// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAPausedDeploymentThatLacksPodsIsStuck(t *testing.T) {
	const stuck = "the Deployment is paused, so Kubernetes creates no Pods of it: kubectl -n shop rollout resume deployment web, in this " +
		"cluster; and leave spec.paused out of the chart, if it has it"
	for sentence, tc := range map[string]struct {
		paused         bool
		total, updated int32
		want           string
	}{
		"no Pods":                       {true, 0, 0, stuck},
		"Pods of the template before":   {true, 2, 0, stuck},
		"all Pods of its template":      {true, 2, 2, ""},
		"no Pods, and it is not paused": {false, 0, 0, ""},
	} {
		replicas := int32(2)
		d := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Paused: tc.paused},
			Status: appsv1.DeploymentStatus{Replicas: tc.total, UpdatedReplicas: tc.updated},
		}
		if got := liveOf(d).stuck; got != tc.want {
			t.Errorf("%s: %q", sentence, got)
		}
	}
}
