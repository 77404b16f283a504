// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/position"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// placedByWaves are the waves of byWaves for resources.
func placedByWaves(advance shipper.AdvancePolicy) *shipper.RolloutStrategy {
	s := byWaves(advance)
	s.Steps, s.ProgressDeadline = nil, "2m"
	return s
}

// placedWavesStory places resources wave after wave: by a user, then by itself once another user has approved the first wave. Content that
// never becomes healthy fails in the first wave, and is aborted; what was mended goes back one wave.
func placedWavesStory() Story {
	manual, mended := "", ""
	return Story{
		Name: "waves-resources", Clusters: 3, Fails: true,
		Begin: func(f *Fixture) {
			f.Keeps("a", "1")
			app := f.Placing()
			app.Spec.Template.Resources.Ready = []shipper.ReadyRule{{Kind: "ConfigMap", Expression: `object.data.k != "` + sick + `"`}}
			f.Creates(app)
			f.Completes(f.Release(0))
		},
		Parts: []Part{
			{Name: "canary", Act: func(f *Fixture) {
				f.Edits(func(app *shipper.Application) { app.Spec.Template.Strategy = placedByWaves(shipper.AdvanceManual) })
				manual = f.Release(1)
				f.WaitsAt(manual, 0, 0)
			}, Check: func(f *Fixture) { f.isPlacedBy(manual, 1) }},
			{Name: "production", Act: func(f *Fixture) {
				f.Moves(manual, 1, 0)
				f.Completes(manual)
			}, Check: func(f *Fixture) { f.isPlacedBy(manual, 3) }},
			{Name: "approved", Act: func(f *Fixture) {
				f.Edits(func(app *shipper.Application) {
					app.Spec.Template.Strategy = placedByWaves("")
					app.Spec.Template.Strategy.Waves[0].AfterTasks = &shipper.WaveTasks{Approvals: 1}
				})
				f.isApproved(f.Release(2))
				f.Completes(f.Release(2))
			}},
			{Name: "sick", Loose: true, Act: func(f *Fixture) {
				f.Keeps("a", sick)
				contender := f.Generation(3)
				f.Eventually("the content of the clusters", "1 of 3 are sick, failed true", func() string {
					failed := shipper.ConditionTrue(f.Get(contender).Status.Conditions, shipper.ReleaseFailed)
					return fmt.Sprintf("%d of 3 are sick, failed %t", f.sickClusters(), failed)
				})
				f.Deletes(&shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: contender}})
				f.IsGone("releases", contender)
				f.Eventually("the content of the clusters", "1 1 1", f.values)
			}},
			{Name: "mended", Loose: true, Act: func(f *Fixture) {
				f.Keeps("a", "2")
				f.Eventually("another Release", "there", func() string {
					history := f.ReleasesOf(appName)
					if mended = history[len(history)-1]; f.Get(mended).Annotations[shipper.ReleaseGenerationAnnotation] < "3" {
						return "awaited"
					}
					return "there"
				})
				f.isApproved(mended)
				f.Completes(mended)
			}, Check: func(f *Fixture) { f.isPlacedBy(mended, 3) }},
			{Name: "back", Loose: true, Act: func(f *Fixture) {
				f.Moves(mended, 0, 0)
				f.Eventually("the content of the clusters", "2 1 1", f.values)
			}, Check: func(f *Fixture) { f.isPlacedBy(mended, 1) }},
		},
	}
}

// isApproved waits until the first wave of a Release waits for an approval, and approves it.
func (f *Fixture) isApproved(release string) {
	f.T.Helper()
	f.Eventually("the canary", "wave 0: AwaitingApproval", func() string {
		rel, reason := f.Get(release), ""
		if c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseAdvancing); c != nil {
			reason = c.Reason
		}
		return fmt.Sprintf("wave %d: %s", position.Wave(rel), reason)
	})
	f.approves(release, 0)
}

// isPlacedBy requires that a Release wrote last in so many clusters.
func (f *Fixture) isPlacedBy(release string, want int) {
	f.T.Helper()
	rel, count := f.Get(release), 0
	for cluster := range f.Clusters {
		if f.laws.lacksPlaced(f.hosts[cluster], rel) == "" {
			count++
		}
	}
	if count != want {
		f.laws.broken(7, "%s is in %d clusters, want %d", release, count, want)
	}
}

// values are what the clusters have.
func (f *Fixture) values() string {
	var out []string
	for n := range len(f.Clusters) {
		content := &corev1.ConfigMap{}
		f.hosts[clusterName(n)].read(configMaps, namespace, "a", content)
		out = append(out, content.Data["k"])
	}
	return strings.Join(out, " ")
}
