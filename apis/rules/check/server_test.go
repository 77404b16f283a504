// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestAClusterWithoutAServerIsNamed(t *testing.T) {
	var clusters []shipper.Cluster
	for i := range 7 {
		c := shipper.Cluster{}
		if c.Name = fmt.Sprintf("c%d", i); i == 0 {
			c.Spec.Metrics = &shipper.ClusterMetrics{Address: "https://prometheus"}
		}
		clusters = append(clusters, c)
	}
	own := shipper.CheckSpec{Prometheus: &shipper.PrometheusCheck{Address: "https://prometheus"}}
	theirs := shipper.CheckSpec{Prometheus: &shipper.PrometheusCheck{}}
	const rest = ": the check is undecided there, and rollouts hold, until an administrator sets spec.metrics of the Cluster, or the Check " +
		"names prometheus.address"
	for sentence, tc := range map[string]struct {
		spec     shipper.CheckSpec
		clusters []shipper.Cluster
		want     string
	}{
		"it names a server":       {own, clusters, ""},
		"it makes a request":      {shipper.CheckSpec{HTTP: &shipper.HTTPCheck{}}, clusters, ""},
		"each cluster has one":    {theirs, clusters[:1], ""},
		"there is no cluster yet": {theirs, nil, ""},
		"one has none":            {theirs, clusters[:2], "there is no Prometheus server to measure by in c1" + rest},
		"many have none":          {theirs, clusters, "there is no Prometheus server to measure by in c1, c2, c3, c4, c5 and 1 more" + rest},
	} {
		if diff := cmp.Diff(tc.want, check.WithoutServer(&tc.spec, tc.clusters)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}
