// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// aCluster of a region, with its Ready condition unless status is empty.
func aCluster(name, region string, status corev1.ConditionStatus, reason string) shipper.Cluster {
	c := shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: shipper.ClusterSpec{Region: region}}
	if status != "" {
		c.Status.Conditions = []shipper.Condition{{Type: shipper.ClusterReady, Status: status, Reason: reason}}
	}
	return c
}

func TestTable(t *testing.T) {
	well := aCluster("us-1", "us", corev1.ConditionTrue, "")
	well.Status.KubernetesVersion = "v1.37.1"
	well.Spec.Capabilities = []string{"gpu", "arm"}
	lost := aCluster("eu-2", "eu", corev1.ConditionFalse, shipper.ClusterUnreachable)
	lost.Spec.Scheduler = shipper.ClusterSchedulerSettings{Unschedulable: true, Weight: ptr[int32](0)}
	want := strings.TrimPrefix(`
CLUSTER   REGION   READY                      SCHEDULING   WEIGHT   CAPABILITIES   RELEASES   VERSION
eu-1      eu       not looked at yet          on           100      -              0          -
eu-2      eu       false ClusterUnreachable   cordoned     0        -              3          -
eu-3      eu       unknown                    on           100      -              0          -
us-1      us       yes                        on           100      gpu,arm        0          v1.37.1
gone      -        there is no Cluster        -            -        -              2          -
`, "\n")
	got := clusterTable(listClusters([]shipper.Cluster{
		well, aCluster("eu-3", "eu", corev1.ConditionUnknown, ""), lost, aCluster("eu-1", "eu", "", ""),
	}, map[string]int{"eu-2": 3, "gone": 2}), 0)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := clusterTable(nil, 0); got != "there are no clusters: `shipperctl clusters join` joins some\n" {
		t.Error(got)
	}
}
