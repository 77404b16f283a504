// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestWhatIsNoClusterIsAtRest has a Cluster that goes, and a Secret that is not one of a Cluster, as that of the webhook's
// certificate: neither gives the cluster reconciler anything to do.
func TestWhatIsNoClusterIsAtRest(t *testing.T) {
	s := begin(t, west)
	c := aCluster("passing", west)
	s.must(s.management.Create(s.ctx, c))
	s.clusterIs(c.Name, shipper.SecretMissing)
	s.lend(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shipper.SystemNamespace, Name: "no-cluster"}})
	s.must(s.management.Delete(s.ctx, c))

	const quiet = time.Second
	before, since := -1.0, time.Now()
	s.soon("the cluster reconciler does not rest", func() string {
		if n := s.passes("cluster"); n != before {
			before, since = n, time.Now()
		}
		if time.Since(since) >= quiet {
			return ""
		}
		return fmt.Sprintf("%v passes", before)
	})
}

// passes counts how often a reconciler has run.
func (s *fixture) passes(reconciler string) float64 {
	s.Helper()
	families, err := metrics.Registry.Gather()
	s.must(err)
	total := 0.0
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "controller" && label.GetValue() == reconciler {
					total += m.GetCounter().GetValue()
				}
			}
		}
	}
	return total
}
