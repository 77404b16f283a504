// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// TestForPrograms holds the names that programs read.
func TestForPrograms(t *testing.T) {
	lost := aCluster("eu-2", "eu", corev1.ConditionFalse, shipper.ClusterUnreachable)
	lost.Status.Conditions[0].Message, lost.Status.KubernetesVersion = "it does not answer", "v1.36.4"
	lost.Spec.Scheduler.Unschedulable, lost.Spec.Capabilities = true, []string{"gpu"}
	const want = `- capabilities: []
  cordoned: false
  deleting: false
  missing: false
  name: eu-1
  ready: ""
  region: eu
  releases: 0
  version: ""
  weight: 100
- capabilities:
  - gpu
  cordoned: true
  deleting: false
  message: it does not answer
  missing: false
  name: eu-2
  ready: "False"
  reason: ClusterUnreachable
  region: eu
  releases: 3
  version: v1.36.4
  weight: 100
- capabilities: []
  cordoned: false
  deleting: false
  missing: true
  name: gone
  ready: ""
  region: ""
  releases: 2
  version: ""
  weight: 0
`
	found := listClusters([]shipper.Cluster{lost, aCluster("eu-1", "eu", "", "")}, map[string]int{"eu-2": 3, "gone": 2})
	var out bytes.Buffer
	if err := cli.YAML.Print(&out, found, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
