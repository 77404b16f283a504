// SPDX-License-Identifier: Apache-2.0

package predicates

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestOnlyFactsOfPlacementWakeApplications(t *testing.T) {
	was := &shipper.Cluster{}
	was.Status.Conditions = []shipper.Condition{{Type: shipper.ClusterReady, Status: "True", LastTransitionTime: metav1.Unix(1, 0)}}
	set := func(c *shipper.Cluster, conditionType, status string) {
		c.Status.Conditions = shipper.SetCondition(c.Status.Conditions,
			shipper.Condition{Type: conditionType, Status: corev1.ConditionStatus(status)}, metav1.Unix(2, 0))
	}
	for sentence, tc := range map[string]struct {
		change func(*shipper.Cluster)
		want   bool
	}{
		"nothing":                      {func(*shipper.Cluster) {}, false},
		"a label":                      {func(c *shipper.Cluster) { c.Labels = map[string]string{"tier": "canary"} }, true},
		"a taint":                      {func(c *shipper.Cluster) { c.Spec.Taints = []shipper.ClusterTaint{{Key: "gpu"}} }, true},
		"a declared property":          {func(c *shipper.Cluster) { c.Spec.Properties = map[string]string{"p": "1"} }, true},
		"it is to go":                  {func(c *shipper.Cluster) { c.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(1, 0))) }, true},
		"it has joined":                {func(c *shipper.Cluster) { set(c, shipper.ClusterJoined, "True") }, true},
		"it is lost":                   {func(c *shipper.Cluster) { set(c, shipper.ClusterReady, "False") }, true},
		"nodes":                        {func(c *shipper.Cluster) { c.Status.Nodes = ptr.To[int32](3) }, true},
		"an observed property":         {func(c *shipper.Cluster) { c.Status.Properties = map[string]string{"p": "1"} }, true},
		"its version":                  {func(c *shipper.Cluster) { c.Status.KubernetesVersion = "v1.37.1" }, true},
		"credentials":                  {func(c *shipper.Cluster) { set(c, shipper.ClusterCredentialsValid, "False") }, false},
		"an annotation":                {func(c *shipper.Cluster) { c.Annotations = map[string]string{"seen": "now"} }, false},
		"the resource version":         {func(c *shipper.Cluster) { c.ResourceVersion = "2" }, false},
		"when it became ready":         {func(c *shipper.Cluster) { c.Status.Conditions[0].LastTransitionTime = metav1.Unix(2, 0) }, false},
		"another object has this name": {func(c *shipper.Cluster) { c.UID = "another" }, true},
		"what its nodes have": {func(c *shipper.Cluster) {
			c.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		}, true},
	} {
		is := was.DeepCopy()
		tc.change(is)
		if got := clusterFactsChanged(was, is); got != tc.want {
			t.Errorf("%s: got %t, want %t", sentence, got, tc.want)
		}
	}
}
