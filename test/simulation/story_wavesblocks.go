// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// BlocksIn creates a RolloutBlock that names clusters, in the story's namespace.
func (f *Fixture) BlocksIn(name string, clusters ...string) {
	f.T.Helper()
	b := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	b.Spec.Message, b.Spec.Scope = "DNS issues", &shipper.RolloutBlockScope{Clusters: clusters}
	f.Creates(b)
}

// TryMove requests a position of a Release.
func (f *Fixture) TryMove(release string, wave, step int32) error {
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: release}}
	patch := fmt.Appendf(nil, `{"spec":{"targetStep":%d,"targetWave":%d}}`, step, wave)
	return f.User.Patch(f.Ctx, rel, client.RawPatch(types.MergePatchType, patch))
}

// wave is the figures of a wave of a Release, once its status is of what was requested last.
func (f *Fixture) wave(release string, wave int) string {
	rel := f.Get(release)
	if rel.Status.ObservedGeneration != rel.Generation || wave >= len(rel.Status.Waves) {
		return "none"
	}
	w := rel.Status.Waves[wave]
	return fmt.Sprintf("%d of %d achieved, %d moving, blocked %v", w.Achieved, w.Clusters, w.Moving, w.BlockedClusters)
}

// wavesBlockedStory has blocks that name clusters in the middle of a wave, a hold, and a block of all its clusters.
func wavesBlockedStory() Story {
	contender, stopped := "", clusterName(1)
	ends := func(f *Fixture, block string) {
		f.Deletes(&shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: block}})
	}
	return Story{
		Name: "waves-blocked", Clusters: 3, Shared: true,
		Begin: func(f *Fixture) {
			f.Bystand()
			f.Creates(f.Application(appName, "0.0.1", replicaCount, allIn()))
			f.Completes(f.Release(0))
			f.Edits(func(app *shipper.Application) {
				s := byWaves("")
				s.Waves[1].MaxConcurrency = new(intstr.FromInt32(2))
				app.Spec.Template.Chart.Version, app.Spec.Template.Strategy = "0.0.2", s
			})
			contender = f.Release(1)
			f.WaitsAt(contender, 0, 0)
			f.Moves(contender, 0, 2)
			f.WaitsAt(contender, 0, 2)
		},
		Parts: []Part{
			{
				Name: "one cluster", Floor: replicaCount,
				Act: func(f *Fixture) {
					f.BlocksIn("stop", stopped)
					time.Sleep(10 * time.Second) // the webhook's replicas see it
					f.Moves(contender, 1, 0)
					f.Moves(contender, 1, 2)
					f.Eventually("the others", fmt.Sprintf("1 of 2 achieved, 0 moving, blocked [%s]", stopped), func() string {
						return f.wave(contender, 1)
					})
				},
				Check: func(f *Fixture) {
					if n := f.laws.readyPods(stopped, contender); n > 0 {
						f.laws.broken(3, "%d Pods of %s are in %s, which a block holds", n, contender, stopped)
					}
				},
			},
			{Name: "it follows", Floor: replicaCount, Act: func(f *Fixture) {
				ends(f, "stop")
				f.Completes(contender)
			}},
			{Name: "back but for one", Floor: replicaCount, Act: func(f *Fixture) {
				f.BlocksIn("stop", stopped)
				time.Sleep(10 * time.Second)
				f.Moves(contender, 1, 0)
				f.Eventually("the other goes back", fmt.Sprintf("1 of 2 achieved, 0 moving, blocked [%s]", stopped), func() string {
					return f.wave(contender, 1)
				})
				f.BlocksIn("all", clusterName(2))
				time.Sleep(10 * time.Second)
				f.IsRefused("a step of blocked clusters", func() error { return f.TryMove(contender, 1, 1) })
			}},
			{Name: "all go on", Floor: replicaCount, Act: func(f *Fixture) {
				ends(f, "all")
				ends(f, "stop")
				time.Sleep(10 * time.Second)
				f.Moves(contender, 1, 2)
				f.Completes(contender)
			}},
		},
	}
}
