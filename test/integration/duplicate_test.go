// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestAClusterGetsAnotherName has a target stay in a cluster by another name than the one it leaves.
func TestAClusterGetsAnotherName(t *testing.T) {
	tests := map[string]struct {
		name   string
		exists func(s *fixture, name string) // makes the second Cluster
		steps  func(name string) [][]string
		ready  bool // by the new name
	}{
		"all at once": {
			"renamed", func(s *fixture, name string) {
				s.lend(clusterSecret(name, west))
				s.lend(aCluster(name, west))
			},
			func(name string) [][]string { return [][]string{{name}} }, true,
		},
		"the new name first and by another address": {
			"readdressed", func(s *fixture, name string) { s.behind(&door{}, name) },
			func(name string) [][]string { return [][]string{{west, name}, {name}} }, true,
		},
		"while it cannot be worked with by the new name": {
			"sealed", func(s *fixture, name string) { s.lend(aCluster(name, west)) },
			func(name string) [][]string { return [][]string{{name}} }, false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := begin(t, west)
			it := s.runs("web-1", 2)
			before := s.settled()
			tc.exists(s, tc.name)
			for _, clusters := range tc.steps(tc.name) {
				s.change(it, func(client.Object) { it.Spec.Clusters = clusters })
				if tc.ready {
					s.installed("web-1")
				}
			}
			s.left("web-1", west)
			s.unchanged(before)
			s.told("web-1", "ClusterHasAnotherName", fmt.Sprintf(
				`Cluster "west" is the same as %q, where this is to stay; the objects there stay as they are`, tc.name))
			if !tc.ready {
				return
			}
			s.must(s.management.Delete(s.ctx, it))
			s.gone(it)
			if s.deployment(west, "web-1") != nil || s.find(west, shipper.AnchorName("web-1"), &corev1.ConfigMap{}) {
				t.Error("something is left by the new name")
			}
		})
	}
}
