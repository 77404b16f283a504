// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Generation waits for the Release of the Application with a generation, and names it.
func (f *Fixture) Generation(n int) (release string) {
	f.T.Helper()
	want := fmt.Sprint("generation ", n)
	f.Eventually("the newest Release", want, func() string {
		for _, o := range f.hosts[management].all(kindOf("releases")) {
			generation := o.GetAnnotations()[shipper.ReleaseGenerationAnnotation]
			if o.GetLabels()[shipper.AppLabel] == appName && generation == fmt.Sprint(n) {
				release = o.GetName()
				return want
			}
		}
		return "none"
	})
	return release
}

// Upgrades gives the Application a version and a strategy.
func (f *Fixture) Upgrades(version string, s steps) {
	f.T.Helper()
	f.Edits(func(app *shipper.Application) {
		app.Spec.Template.Chart.Version, app.Spec.Template.Strategy.Steps = version, s
	})
}

// rollbackStory rolls back by steps while another rollout is half way, supersedes a contender, and rolls back at once.
func rollbackStory() Story {
	var first, second string
	return Story{
		Name: "rollback",
		Begin: func(f *Fixture) {
			f.Bystand()
			f.Creates(f.Application(appName, "0.0.1", replicaCount, vanguard()))
			first = f.Generation(0)
			for step := range int32(3) {
				f.Steps(first, step)
				if step < 2 {
					f.WaitsForCommand(first, step)
				}
			}
			f.Completes(first)
			f.Upgrades("0.0.2", vanguard())
			second = f.Generation(1)
			f.WaitsForCommand(second, 0)
			f.Steps(second, 2)
			f.Completes(second)
		},
		Parts: []Part{
			{Name: "by steps", Floor: replicaCount, Act: func(f *Fixture) {
				f.Edits(func(app *shipper.Application) { app.Spec.RollbackTo = &shipper.RollbackTo{Release: first} })
				third := f.Generation(2)
				f.WaitsForCommand(third, 0)
				f.Steps(third, 1)
				f.WaitsForCommand(third, 1)
			}},
			{Name: "superseded", Floor: replicaCount, Act: func(f *Fixture) {
				f.Edits(func(app *shipper.Application) { app.Spec.RollbackTo = &shipper.RollbackTo{Release: second} })
				fourth := f.Generation(3)
				f.WaitsForCommand(fourth, 0)
				f.Steps(fourth, 2)
				f.Completes(fourth)
			}},
			{Name: "at once", Floor: replicaCount, Act: func(f *Fixture) {
				f.Edits(func(app *shipper.Application) {
					app.Spec.RollbackTo = &shipper.RollbackTo{Release: first, Strategy: shipper.RollbackImmediate}
				})
				f.Completes(f.Generation(4))
			}},
		},
	}
}
