// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// byWaves has the first cluster as a canary, and all others after it, one at a time.
func byWaves(advance shipper.AdvancePolicy) *shipper.RolloutStrategy {
	return &shipper.RolloutStrategy{Steps: vanguard(), Advance: advance, Waves: []shipper.Wave{
		{Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{shipper.RegionLabel: region(0)}}},
		{Name: "production"},
	}}
}

// wavesStory rolls out cluster after cluster by hand, moves one wave back, and aborts in the middle of the last.
func wavesStory() Story {
	incumbent, contender := "", ""
	return Story{
		Name: "waves", Clusters: 3,
		Begin: func(f *Fixture) {
			f.Bystand()
			f.Creates(f.Application(appName, "0.0.1", replicaCount, allIn()))
			incumbent = f.Release(0)
			f.Completes(incumbent)
		},
		Parts: []Part{
			{Name: "canary", Floor: replicaCount, Act: func(f *Fixture) {
				f.Edits(func(app *shipper.Application) {
					app.Spec.Template.Chart.Version, app.Spec.Template.Strategy = "0.0.2", byWaves("")
				})
				contender = f.Release(1)
				f.WaitsAt(contender, 0, 0)
				f.Moves(contender, 0, 2)
				f.WaitsAt(contender, 0, 2)
			}},
			{Name: "production", Floor: replicaCount, Act: func(f *Fixture) {
				f.Moves(contender, 1, 0)
				f.WaitsAt(contender, 1, 0)
				f.Moves(contender, 1, 1)
				f.WaitsAt(contender, 1, 1)
			}},
			{Name: "back", Floor: replicaCount, Act: func(f *Fixture) {
				f.Moves(contender, 0, 2)
				f.WaitsAt(contender, 0, 2)
			}, Check: func(f *Fixture) {
				for _, cluster := range waves.Parse(f.Get(contender)).In(1, []string{clusterName(1), clusterName(2)}) {
					if n := f.laws.readyPods(cluster, contender); n > 0 {
						f.laws.broken(7, "%d Pods of %s are left in %s", n, contender, cluster)
					}
				}
			}},
			{Name: "again", Floor: replicaCount, Act: func(f *Fixture) {
				f.Moves(contender, 1, 2)
				f.Completes(contender)
			}},
			{
				Name: "abort", Floor: replicaCount,
				Before: func(f *Fixture) {
					f.Moves(contender, 1, 1)
					f.WaitsAt(contender, 1, 1)
				},
				Act: func(f *Fixture) {
					f.Deletes(&shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: contender}})
					f.IsGone("releases", contender)
					f.Settles(incumbent)
				},
			},
		},
	}
}

// wavesByThemselvesStory rolls out by waves that begin by themselves, and replaces a Release in the middle of its last wave.
func wavesByThemselvesStory() Story {
	superseded, last := "", ""
	return Story{
		Name: "waves-automatic", Clusters: 3,
		Begin: func(f *Fixture) {
			f.Creates(f.Application(appName, "0.0.1", replicaCount, allIn()))
			f.Completes(f.Release(0))
		},
		Parts: []Part{
			{Name: "all by itself", Floor: replicaCount, Act: func(f *Fixture) {
				f.Edits(func(app *shipper.Application) {
					app.Spec.RevisionHistoryLimit = ptr.To[int32](1)
					app.Spec.Template.Chart.Version, app.Spec.Template.Strategy = "0.0.2", byWaves(shipper.AdvanceAutomatic)
				})
				f.Completes(f.Release(1))
			}},
			{
				Name: "superseded", Floor: replicaCount,
				Before: func(f *Fixture) {
					f.Edits(func(app *shipper.Application) {
						app.Spec.Template.Chart.Version, app.Spec.Template.Strategy = "0.0.1", byWaves("")
					})
					superseded = f.Release(2)
					f.WaitsAt(superseded, 0, 0)
					f.Moves(superseded, 0, 2)
					f.WaitsAt(superseded, 0, 2)
					f.Moves(superseded, 1, 1)
					f.WaitsAt(superseded, 1, 1)
				},
				Act: func(f *Fixture) {
					f.Edits(func(app *shipper.Application) {
						app.Spec.Template.Strategy = byWaves(shipper.AdvanceAutomatic)
						app.Spec.Template.Chart.Version = "0.0.2"
						(*app.Spec.Template.Values)["more"] = true
					})
					f.IsGone("releases", superseded)
					history := f.ReleasesOf(appName)
					last = history[len(history)-1]
					f.Completes(last)
				},
			},
		},
	}
}
