// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
)

// TestKilledAfterEveryWriteOfASwitch has a rollout that goes on by itself from preview to full on, and is switched back: first undisturbed,
// then with a reconciler that is killed after every write. Each step is requested once.
func TestKilledAfterEveryWriteOfASwitch(t *testing.T) {
	env.Nightly(t, "test/simulation kills a switch after each write, and test/e2e switches on control planes")
	undisturbed := map[string]string{}
	t.Run("undisturbed", func(t *testing.T) { switches(t, spared, undisturbed) })
	if t.Failed() {
		return
	}
	t.Run("the answer lost", func(t *testing.T) { switches(t, unanswered, undisturbed) })
}

// blueGreen is the Application with a preview Service and two steps that end by themselves.
func (s *fixture) blueGreen(note string) *shipper.Application {
	app := s.application(appName, "0.0.1", replicas, env.Strategy{
		{"preview", 100, 50, 100, 0}, {"switched", 100, 100, 0, 100}, {"full on", 0, 100, 0, 100},
	})
	app.Spec.Template.Chart.Name = "blue-green"
	values := *app.Spec.Template.Values
	values["nameOverride"], values["note"] = "test-nginx", note
	st := app.Spec.Template.Strategy
	st.FirstRelease, st.Steps[0].After, st.Steps[1].After = shipper.FirstReleaseImmediate, "0s", "0s"
	return app
}

func switches(t *testing.T, how death, ends map[string]string) {
	s := begin(t)
	s.bystand()
	s.Must("creating the application", world.Management.Create(s.Ctx, s.blueGreen("blue")))
	incumbent := s.Release(0)
	s.Completes(incumbent)
	s.rests()
	s.bystanders = s.othersVersions()

	contender := ""
	s.chapter("switch", how, replicas, ends, func() {
		s.Edits(func(app *shipper.Application) { app.Spec.Template = s.blueGreen("green").Spec.Template })
		contender = s.Release(1)
		s.Completes(contender)
	})
	s.chapter("switched back", how, replicas, ends, func() {
		s.Steps(contender, 0)
		s.WaitsForCommand(contender, 0)
	})
}
