// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// publishShop publishes chart shop. Ports of version 0.0.3 lead elsewhere.
func (s *fixture) publishShop() {
	s.Helper()
	for _, version := range []string{"0.0.1", "0.0.2", "0.0.3"} {
		files := charts.Shop(version)
		if version == "0.0.3" {
			services := files["templates/services.yaml"]
			files["templates/services.yaml"] = strings.ReplaceAll(services, "port: 80, targetPort: http", "port: 80, targetPort: 9999")
		}
		packed, err := charts.PackFiles("shop", version, files)
		s.must(err)
		world.charts.Publish(packed)
	}
}

// installShop installs a version of chart shop, whose objects are named by Application.
func (s *fixture) installShop(name, version string) {
	s.Helper()
	s.must(s.management.Create(s.ctx, &shipper.InstallationTarget{ObjectMeta: s.meta(name), Spec: shipper.InstallationTargetSpec{
		Clusters: []string{west}, CanOverride: true, Values: &shipper.ChartValues{},
		Chart: &shipper.Chart{
			Name: "shop", Version: version, RepoURL: world.charts.URL, Naming: shipper.NamingByApplication,
		},
	}}))
}

// scaleShop gives each Deployment of a Release a number of Pods, as its steps do.
func (s *fixture) scaleShop(release string, n int) {
	s.Helper()
	var list appsv1.DeploymentList
	of := client.MatchingLabels{shipper.ReleaseLabel: release}
	s.must(world.clusters[west].List(s.ctx, &list, client.InNamespace(s.namespace), of))
	if len(list.Items) != 2 {
		s.Fatalf("Release %s has %d Deployments", release, len(list.Items))
	}
	for i := range list.Items {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n))
		s.must(world.clusters[west].Patch(s.ctx, &list.Items[i], patch, client.FieldOwner(shipper.FieldOwner)))
	}
	s.soon("the Pods of "+release+" are not there", func() string {
		if pods := s.pods(west, release); len(pods) != 2*n {
			return fmt.Sprint(len(pods))
		}
		return ""
	})
}

// serve waits until so many Pods of each Deployment of Releases are endpoints of the Services front, back and all.
func (s *fixture) serve(want map[string]int) {
	s.Helper()
	both := map[string]int{}
	for release, n := range want {
		both[release] = 2 * n
	}
	s.soon("traffic does not settle", func() string {
		for service, want := range map[string]map[string]int{"front": want, "back": want, "all": both} {
			if diff := cmp.Diff(want, s.endpoints(west, service)); diff != "" {
				return service + " (-want +got): " + diff
			}
		}
		return ""
	})
}

// hasPorts waits until Service front has ports.
func (s *fixture) hasPorts(want ...int32) {
	s.Helper()
	s.soon("Service front has other ports", func() string {
		var service corev1.Service
		s.find(west, "front", &service)
		var got []int32
		for _, port := range service.Spec.Ports {
			got = append(got, port.Port)
		}
		return cmp.Diff(want, got)
	})
}

// TestServicesOfAChartShiftTogether takes three Services, one of which is in front of two Deployments, from a Release to the next, whose
// Pods have other labels and whose Service front has a port less.
func TestServicesOfAChartShiftTogether(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	s.publishShop()
	s.installShop("web-1", "0.0.1")
	s.installed("web-1")
	s.scaleShop("web-1", 2)
	s.weigh("web-1", 100, west)
	s.weighed("web-1")
	s.serve(map[string]int{"web-1": 2})
	for _, service := range []string{"front", "back", "all"} {
		s.followService(west, service, true)
	}

	s.takeOver("web-1", false)
	s.weigh("web-2", 0, west)
	s.installShop("web-2", "0.0.2")
	s.installed("web-2")
	s.hasPorts(80, 8081)
	s.scaleShop("web-2", 2)
	s.weigh("web-2", 100, west)
	s.weighed("web-1")
	s.weighed("web-2")
	s.serve(map[string]int{"web-1": 2, "web-2": 2})

	s.weigh("web-1", 0, west)
	s.weighed("web-1")
	s.weighed("web-2")
	s.serve(map[string]int{"web-2": 2})
	s.hasPorts(80, 8081) // for clients of the Pods that are still there
	s.scaleShop("web-1", 0)
	s.hasPorts(80)

	s.takeOver("web-2", false)
	s.installShop("web-3", "0.0.3")
	got := s.notInstalled("web-3", west, shipper.ObjectConflict)
	const want = "port 80/TCP leads to http in the incumbent and to 9999 in the newest Release: " +
		"give the port of the containers one name in both, and have the Service name it"
	if strings.Count(got, want) != 2 {
		t.Errorf("it says %q", got)
	}
	s.serve(map[string]int{"web-2": 2})
}
