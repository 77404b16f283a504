// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// TestAClusterThatTakesNoWritesHoldsSomeWorkersOnly has a cluster that answers its heartbeats and no write, more to install there
// than there are workers, and something to install elsewhere.
func TestAClusterThatTakesNoWritesHoldsSomeWorkersOnly(t *testing.T) {
	s := begin(t, west, east)
	d := &door{}
	s.behind(d, "sluggish")
	s.clusterIs("sluggish", "")
	d.setWrites(freeze)
	const targets = 6
	for i := range targets {
		s.installApart(fmt.Sprint("web-", i), "sluggish")
	}
	full := func() string { // of four workers, one is left for other namespaces; the Applications' Pods may wait, too
		if at := s.installing("sluggish"); at["working"] != 3 || at["waiting"] < targets-3 {
			return fmt.Sprint(at)
		}
		return ""
	}
	s.soon("the cluster is not full", full)

	s.installApart("web-9", east)
	s.installed("web-9")
	if diff := full(); diff != "" {
		t.Errorf("while others go on: %s", diff)
	}
	d.setWrites(nil)
	s.soon("some wait still", func() string {
		return cmp.Diff(map[string]float64{"working": 0, "waiting": 0}, s.installing("sluggish"))
	})
	for i := range targets {
		s.installed(fmt.Sprint("web-", i))
	}
}

// installApart makes a target of an Application of its own, which shares nothing with others.
func (s *fixture) installApart(name, cluster string) {
	s.Helper()
	s.app = name
	s.install(name, "test-nginx", "0.0.1", shipper.ChartValues{"nameOverride": strings.ReplaceAll(name, "-", "")}, cluster)
}

// TestAnyNumberOfClustersThatTakeNoWritesLeavesWorkers has three clusters, each with more to do than workers.
func TestAnyNumberOfClustersThatTakeNoWritesLeavesWorkers(t *testing.T) {
	s := begin(t, west, east)
	doors := map[string]*door{"sluggish-1": {}, "sluggish-2": {}, "sluggish-3": {}}
	for cluster, d := range doors {
		s.behind(d, cluster)
	}
	for cluster, d := range doors {
		s.clusterIs(cluster, "")
		d.setWrites(freeze)
	}
	const targets = 5
	for cluster := range doors {
		for i := range targets {
			s.installApart(fmt.Sprint("of-", cluster, "-", i), cluster)
		}
	}
	for cluster := range doors {
		s.soon(cluster+" is not full", func() string {
			if at := s.installing(cluster); at["working"] != 3 || at["waiting"] < targets-3 {
				return fmt.Sprint(at)
			}
			return ""
		})
	}
	s.installApart("web-9", east)
	s.installed("web-9")
	for cluster, d := range doors {
		d.setWrites(nil)
		s.soon("some wait for "+cluster+" still", func() string {
			return cmp.Diff(0.0, s.installing(cluster)["waiting"])
		})
	}
}

// installing reports how many passes are under way in a cluster, and how many wait.
func (s *fixture) installing(cluster string) map[string]float64 {
	s.Helper()
	families, err := metrics.Registry.Gather()
	s.must(err)
	states := map[string]string{"controller_runtime_active_workers": "working", "workqueue_depth": "waiting"}
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if state := states[family.GetName()]; state != "" && label.GetName() == "controller" && label.GetValue() == "member-"+cluster {
					out[state] += m.GetGauge().GetValue()
				}
			}
		}
	}
	return out
}

// TestARepositoryThatHangsKeepsNoPlaces has a repository that answers nothing, more to install from there than there are workers,
// and something to install from elsewhere in the same cluster.
func TestARepositoryThatHangsKeepsNoPlaces(t *testing.T) {
	s := begin(t, west)
	const cluster = "prompt" // which no other test uses
	s.behind(&door{}, cluster)
	s.clusterIs(cluster, "")
	repository := charts.Serve(t)
	repository.Break(charts.Stalled)
	const targets = 6
	for i := range targets {
		s.app = fmt.Sprint("slow-", i)
		it := &shipper.InstallationTarget{ObjectMeta: s.meta(s.app), Spec: shipper.InstallationTargetSpec{
			Clusters: []string{cluster}, CanOverride: true, Values: &shipper.ChartValues{"nameOverride": fmt.Sprint("of", i)},
			Chart: &shipper.Chart{Name: "test-nginx", Version: "0.0.1", RepoURL: repository.URL},
		}}
		s.must(s.management.Create(s.ctx, it))
	}
	s.soon("the repository gets no request", func() string {
		if repository.Requests("/index.yaml") == 0 {
			return "not yet"
		}
		return ""
	})
	s.app = "web"
	s.install("web-1", "nginx", "0.0.1", shipper.ChartValues{}, cluster)
	s.installed("web-1")
	if said := s.notInstalled("slow-5", cluster, shipper.InProgress); said != "the chart is being fetched" {
		t.Errorf("the target says %q", said)
	}
	s.soon("places are kept", func() string { return cmp.Diff(map[string]float64{"working": 0, "waiting": 0}, s.installing(cluster)) })
	repository.Heal()
	for i := range targets {
		s.installed(fmt.Sprint("slow-", i))
	}
}
