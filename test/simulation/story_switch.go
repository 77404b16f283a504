// SPDX-License-Identifier: Apache-2.0

package simulation

import shipper "shipper.dev/shipper/apis/shipper/v1alpha1"

// blueGreen is the Application with a preview Service and two steps that end by themselves.
func (f *Fixture) blueGreen(note string) *shipper.Application {
	s := steps{step("preview", 100, 50, 100, 0), step("switched", 100, 100, 0, 100), step("full on", 0, 100, 0, 100)}
	s[0].After, s[1].After = "0s", "0s"
	app := f.Application(appName, "0.0.1", replicaCount, s)
	app.Spec.Template.Chart.Name = "blue-green"
	values := *app.Spec.Template.Values
	values["nameOverride"], values["note"] = "test-nginx", note
	app.Spec.Template.Strategy.FirstRelease = shipper.FirstReleaseImmediate
	return app
}

// switchStory goes on by itself from preview to full on, and is switched back. Each step is requested once: law 4.
func switchStory() Story {
	contender := ""
	return Story{
		Name: "switch",
		Begin: func(f *Fixture) {
			f.Bystand()
			f.Creates(f.blueGreen("blue"))
			f.Completes(f.Release(0))
		},
		Parts: []Part{
			{Name: "switched", Floor: replicaCount, Act: func(f *Fixture) {
				next := f.blueGreen("green")
				f.Edits(func(app *shipper.Application) { app.Spec.Template = next.Spec.Template })
				contender = f.Release(1)
				f.Completes(contender)
			}},
			{Name: "switched back", Floor: replicaCount, Act: func(f *Fixture) {
				f.Steps(contender, 0)
				f.WaitsForCommand(contender, 0)
			}},
		},
	}
}

// soakStory goes on by itself, each time when the step has been achieved for some time, and is held at one step.
func soakStory() Story {
	contender := ""
	return Story{
		Name: "soak",
		Begin: func(f *Fixture) {
			f.Bystand()
			f.Creates(f.Application(appName, "0.0.1", replicaCount, allIn()))
			f.Completes(f.Release(0))
		},
		Parts: []Part{
			{Name: "soaks", Floor: replicaCount, Act: func(f *Fixture) {
				s := vanguard()
				s[0].After, s[1].After = "40s", "1m"
				f.Upgrades("0.0.2", s)
				contender = f.Release(1)
				f.Completes(contender)
			}},
			{Name: "goes back, and on", Floor: replicaCount, Act: func(f *Fixture) {
				f.Steps(contender, 0)
				f.WaitsForCommand(contender, 0)
				f.Steps(contender, 1) // and the last one by itself
				f.Completes(contender)
			}},
		},
	}
}
