// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// wavesWaitStory rolls out by waves that begin by themselves, the second once the first has waited and its checks have passed. Law 4 judges
// both at the move.
func wavesWaitStory() Story {
	contender := ""
	return Story{
		Name: "waves-wait", Clusters: 2,
		Begin: func(f *Fixture) {
			f.Creates(f.Application(appName, "0.0.1", replicaCount, allIn()))
			f.Completes(f.Release(0))
			f.Creates(&shipper.Check{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "answers"}, Spec: shipper.CheckSpec{
				Interval: "5s", Timeout: "5s", Count: 2, HTTP: &shipper.HTTPCheck{URL: checksURL},
			}})
		},
		Parts: []Part{{
			Name: "waited", Floor: replicaCount,
			Act: func(f *Fixture) {
				f.Edits(func(app *shipper.Application) {
					app.Spec.Template.Chart.Version, app.Spec.Template.Strategy = "0.0.2", byWaves(shipper.AdvanceAutomatic)
					app.Spec.Template.Strategy.Waves[0].AfterTasks = &shipper.WaveTasks{
						Wait: "40s", Checks: []shipper.StepCheck{{Check: "answers"}},
					}
				})
				contender = f.Release(1)
				f.Completes(contender)
			},
			Check: func(f *Fixture) { f.checkedInCanary(contender) },
		}},
	}
}

// checkedInCanary requires that the checks of a Release's first wave passed in one run, in its cluster alone.
func (f *Fixture) checkedInCanary(release string) {
	f.T.Helper()
	target := &shipper.CheckTarget{}
	f.hosts[management].read(kindOf("checktargets"), namespace, release, target)
	var said []string
	for _, r := range target.Status.Results {
		said = append(said, fmt.Sprintf("%s %s %d/%d in %s", r.Name, r.Phase, r.Passed, r.Failed, r.Cluster))
	}
	want := []string{"answers Passed 2/0 in " + clusterName(0)}
	if target.Spec.Run != 1 || !slices.Equal(said, want) {
		f.laws.broken(4, "run %d has %q, not %q", target.Spec.Run, said, want)
	}
}
