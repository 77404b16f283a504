// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestAClusterThatComesBackWithOtherObjectsIsMadeWhole takes things away, and puts others there, while Shipper cannot see it.
func TestAClusterThatComesBackWithOtherObjectsIsMadeWhole(t *testing.T) {
	s := begin(t, west)
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, west)
	s.installed("web-1")
	s.scale("web-1", 100, 3, west)
	s.scaled("web-1")
	s.weigh("web-1", 1, west)
	s.inTraffic(west, 3)

	world.wires[west].Cut()
	defer s.mended(west)
	s.clusterIs(west, shipper.ClusterUnreachable)
	admin := world.clusters[west] // who does not come by that wire
	before := s.deployment(west, "web-1")
	s.must(admin.Delete(s.ctx, before))
	s.must(admin.Delete(s.ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "test-nginx-prod"}}))
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "foreign"}, Data: map[string]string{"a": "b"}}
	s.must(admin.Create(s.ctx, foreign))

	s.mended(west)
	s.soon("what was taken away does not come back", func() string {
		now := s.deployment(west, "web-1")
		if now == nil || now.UID == before.UID || !s.find(west, "test-nginx-prod", &corev1.Service{}) {
			return "something is missing"
		}
		return ""
	})
	s.inTraffic(west, 3)
	s.installed("web-1")
	s.scaled("web-1")
	s.weighed("web-1")
	var now corev1.ConfigMap
	if !s.find(west, foreign.Name, &now) || now.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("what is foreign was touched: %s", fmt.Sprint(now))
	}
}
