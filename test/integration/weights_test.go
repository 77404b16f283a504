// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// release makes a Release.
func (s *fixture) release(name string) *shipper.Release {
	s.Helper()
	r := &shipper.Release{ObjectMeta: s.meta(name), Spec: shipper.ReleaseSpec{
		Environment: shipper.ReleaseEnvironment{
			Chart:               shipper.Chart{Name: "test-nginx", Version: "0.0.1", RepoURL: world.charts.URL},
			ClusterRequirements: shipper.ClusterRequirements{Regions: []shipper.RegionRequirement{{Name: "here"}}},
			Strategy:            &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{{Name: "full on"}}},
		},
	}}
	s.must(s.management.Create(s.ctx, r))
	return r
}

// give makes a Release the owner of its TrafficTarget.
func (s *fixture) give(r *shipper.Release) {
	s.Helper()
	s.change(&shipper.TrafficTarget{ObjectMeta: s.meta(r.Name)}, func(o client.Object) {
		o.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: shipper.GroupVersion.String(), Kind: "Release", Name: r.Name, UID: r.UID,
		}})
	})
}

func TestTheWeightOfAReleaseThatIsGoingCountsNoLonger(t *testing.T) {
	t.Parallel()
	const finalizer = "test.example.com/wait"
	s := begin(t, west)
	releases := map[string]*shipper.Release{}
	for name, weight := range map[string]uint32{"web-1": 1, "web-2": 3} {
		releases[name] = s.release(name)
		s.install(name, "test-nginx", "0.0.1", shipper.ChartValues{}, west)
		s.installed(name)
		s.takeOver(name, false)
		s.scale(name, 100, 4, west)
		s.scaled(name)
		s.weigh(name, weight, west)
		s.give(releases[name])
	}
	s.soon("traffic is not as weighed", s.serves(map[string]int{"web-1": 2, "web-2": 4}))

	going := releases["web-2"]
	s.change(going, func(o client.Object) { o.SetFinalizers([]string{finalizer}) })
	s.must(s.management.Delete(s.ctx, going))
	s.soon("its weight still counts", s.serves(map[string]int{"web-1": 4}))
	s.weighed("web-1")
	s.change(going, func(o client.Object) { o.SetFinalizers(nil) })
	s.gone(going)
	s.gone(&shipper.TrafficTarget{ObjectMeta: s.meta(going.Name)})
	s.soon("the share changed once more", s.serves(map[string]int{"web-1": 4}))
}

// serves reports how the ready endpoints in west differ.
func (s *fixture) serves(want map[string]int) func() string {
	return func() string {
		got := s.endpoints(west, "test-nginx-prod")
		if cmp.Equal(want, got) {
			return ""
		}
		return fmt.Sprint(got)
	}
}
