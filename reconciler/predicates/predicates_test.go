// SPDX-License-Identifier: Apache-2.0

package predicates

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestOnlyWhatPlacementsReadOfAClusterWakesApplications(t *testing.T) {
	was := &shipper.Cluster{}
	was.Status.Conditions = []shipper.Condition{{Type: shipper.ClusterReady, Status: "True", LastTransitionTime: metav1.Unix(1, 0)}}
	set := func(c *shipper.Cluster, conditionType, status string) {
		c.Status.Conditions = shipper.SetCondition(c.Status.Conditions,
			shipper.Condition{Type: conditionType, Status: corev1.ConditionStatus(status)}, metav1.Unix(2, 0))
	}
	for sentence, tc := range map[string]struct {
		change func(*shipper.Cluster)
		want   string
	}{
		"nothing":                      {func(*shipper.Cluster) {}, ""},
		"a label":                      {func(c *shipper.Cluster) { c.Labels = map[string]string{"tier": "canary"} }, "properties"},
		"a taint":                      {func(c *shipper.Cluster) { c.Spec.Taints = []shipper.ClusterTaint{{Key: "gpu"}} }, "facts"},
		"a declared property":          {func(c *shipper.Cluster) { c.Spec.Properties = map[string]string{"p": "1"} }, "properties"},
		"it is to go":                  {func(c *shipper.Cluster) { c.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(1, 0))) }, "facts"},
		"it has joined":                {func(c *shipper.Cluster) { set(c, shipper.ClusterJoined, "True") }, "facts"},
		"it is lost":                   {func(c *shipper.Cluster) { set(c, shipper.ClusterReady, "False") }, "facts"},
		"nodes":                        {func(c *shipper.Cluster) { c.Status.Nodes = ptr.To[int32](3) }, "properties"},
		"an observed property":         {func(c *shipper.Cluster) { c.Status.Properties = map[string]string{"p": "1"} }, "properties"},
		"its version":                  {func(c *shipper.Cluster) { c.Status.KubernetesVersion = "v1.37.1" }, "properties"},
		"credentials":                  {func(c *shipper.Cluster) { set(c, shipper.ClusterCredentialsValid, "False") }, ""},
		"an annotation":                {func(c *shipper.Cluster) { c.Annotations = map[string]string{"seen": "now"} }, ""},
		"the resource version":         {func(c *shipper.Cluster) { c.ResourceVersion = "2" }, ""},
		"when it became ready":         {func(c *shipper.Cluster) { c.Status.Conditions[0].LastTransitionTime = metav1.Unix(2, 0) }, ""},
		"another object has this name": {func(c *shipper.Cluster) { c.UID = "another" }, "facts"},
		"what its nodes have": {func(c *shipper.Cluster) {
			c.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		}, "properties"},
	} {
		is := was.DeepCopy()
		tc.change(is)
		got, e := "", event.UpdateEvent{ObjectOld: was, ObjectNew: is}
		if clusterChanged(clusterFacts)(e) {
			got += "facts"
		}
		if clusterChanged(clusterProperties)(e) {
			got += "properties"
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", sentence, got, tc.want)
		}
	}
}
