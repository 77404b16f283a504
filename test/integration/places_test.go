// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestInstallsTheValuesOfEachCluster(t *testing.T) {
	t.Parallel()
	s := begin(t, west, east)
	it := &shipper.InstallationTarget{ObjectMeta: s.meta("web-1"), Spec: shipper.InstallationTargetSpec{
		Clusters: []string{west, east}, CanOverride: true, Values: &shipper.ChartValues{"message": "for all"},
		Chart: &shipper.Chart{Name: "configmap", Version: "0.0.1", RepoURL: world.charts.URL},
		// Neither cluster is in such a region; the regions that were recorded when they were chosen count.
		Regions:          map[string]string{west: "moon", east: "mars"},
		ValuesPerRegion:  []shipper.ValuesFor{{Name: "moon", Values: &shipper.ChartValues{"message": "for the moon"}}},
		ValuesPerCluster: []shipper.ValuesFor{{Name: east, Values: &shipper.ChartValues{"message": "for east"}}},
	}}
	s.must(s.management.Create(s.ctx, it))
	s.installed("web-1")
	says := func(cluster, want string) {
		t.Helper()
		s.soon("the ConfigMap in "+cluster, func() string {
			var cm corev1.ConfigMap
			if s.find(cluster, "configmap-settings", &cm); cm.Data["message"] == want {
				return ""
			}
			return "it says " + cm.Data["message"] + ", want " + want
		})
	}
	versions := func(cluster string) string {
		var anchor, cm corev1.ConfigMap
		var d appsv1.Deployment
		s.find(cluster, "web-1-anchor", &anchor)
		s.find(cluster, "configmap-settings", &cm)
		if !s.find(cluster, "web-1-configmap", &d) {
			t.Errorf("%s has no Deployment", cluster)
		}
		// Of the Deployment its generation counts: its own controller may still be writing its status.
		return fmt.Sprint(anchor.ResourceVersion, " ", cm.ResourceVersion, " ", d.Generation)
	}
	says(west, "for the moon")
	says(east, "for east")

	before := versions(west)
	s.change(it, func(client.Object) {
		it.Spec.ValuesPerCluster[0].Values = &shipper.ChartValues{"message": "for east again"}
	})
	s.installed("web-1")
	says(east, "for east again")
	if after := versions(west); after != before {
		t.Errorf("a change for east wrote in west: versions %s before, %s after", before, after)
	}

	s.change(it, func(client.Object) {
		it.Spec.ValuesPerCluster[0].Patch = []shipper.PatchOperation{{"op": "remove", "path": "/nothing"}}
	})
	message := s.notInstalled("web-1", east, shipper.ChartError)
	if !strings.Contains(message, `the patch of cluster "east": operation 0 (remove /nothing) does not apply`) {
		t.Errorf("the target says %s", message)
	}
	if after := versions(west); after != before {
		t.Errorf("a change for east wrote in west: versions %s before, %s after", before, after)
	}
}
