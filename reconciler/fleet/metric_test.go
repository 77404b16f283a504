// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestWhichClustersCanBeWorkedWithIsPublished(t *testing.T) {
	f := New(Options{Reader: oneCluster{}})
	registry := prometheus.NewPedanticRegistry()
	if err := f.Publish(registry); err != nil {
		t.Fatal(err)
	}
	for name, state := range map[string]State{"good": {Ready: true}, "bad": {Reason: "ClusterUnreachable"}, "new": {Pending: true}} {
		f.Set(name, nil, errors.New("unknown"))
		c := f.connections[name]
		f.set(c, state, nil)
	}
	const want = `# HELP shipper_cluster_ready 1 while the reconciler that leads can work with a cluster, 0 while it cannot. Label cluster: ` +
		`the Cluster's name. Absent while the cluster is being connected to for the first time, and where no reconciler leads.
# TYPE shipper_cluster_ready gauge
shipper_cluster_ready{cluster="bad"} 0
shipper_cluster_ready{cluster="good"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	f.SetCredentials("good", Credentials{NotAfter: 2000000000})
	f.SetCredentials("bad", Credentials{NotAfter: 1000000000, Reason: "CredentialsEnded", Message: "too late"})
	const credentials = `shipper_cluster_credentials_not_after_timestamp_seconds{cluster="bad"} 1e+09
shipper_cluster_credentials_not_after_timestamp_seconds{cluster="good"} 2e+09
shipper_cluster_credentials_valid{cluster="bad"} 0
shipper_cluster_credentials_valid{cluster="good"} 1
`
	if diff := cmp.Diff(credentials, valuesOf(t, registry, "shipper_cluster_credentials_")); diff != "" {
		t.Errorf("of credentials (-want +got):\n%s", diff)
	}
	f.Remove("bad")
	f.SetCredentials("good", Credentials{})
	without := strings.Replace(want, "shipper_cluster_ready{cluster=\"bad\"} 0\n", "", 1)
	if err := testutil.GatherAndCompare(registry, strings.NewReader(without)); err != nil {
		t.Errorf("of a cluster that is removed something is left: %v", err)
	}
}

// valuesOf are the lines of all metrics whose names begin so, without their help.
func valuesOf(t *testing.T, registry prometheus.Gatherer, begin string) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), begin) {
			continue
		}
		for _, m := range family.GetMetric() {
			fmt.Fprintf(&out, "%s{cluster=%q} %v\n", family.GetName(), m.GetLabel()[0].GetValue(), m.GetGauge().GetValue())
		}
	}
	return out.String()
}
