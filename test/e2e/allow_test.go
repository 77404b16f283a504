// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestFreezeTrapsNoBrokenRelease blocks all but aborts, retreats and rollbacks while a contender that has half of the traffic
// breaks. Each of the three completes under the block; a move to another step or version does not.
func TestFreezeTrapsNoBrokenRelease(t *testing.T) {
	t.Parallel()
	for name, goesBack := range map[string]func(s *fixture, incumbent, contender string){
		"it is aborted": func(s *fixture, incumbent, contender string) {
			s.Must("deleting the contender", s.deletionOf(&shipper.Release{}, contender))
			s.templateIs("0.0.1")
			s.settles(incumbent)
			s.readyPods(incumbent, 4)
			s.readyPods(contender, 0)
			for _, cluster := range s.clusters {
				s.holdsNothingBut(cluster, incumbent)
			}
		},
		"it is stepped back": func(s *fixture, incumbent, contender string) {
			s.Steps(contender, 0)
			s.WaitsForCommand(contender, 0)
			s.readyPods(incumbent, 4)
			s.readyPods(contender, 1)
		},
		"it is rolled back": func(s *fixture, incumbent, contender string) {
			s.Edits(func(app *shipper.Application) { app.Spec.RollbackTo = &shipper.RollbackTo{} })
			s.templateIs("0.0.1")
			back := s.releaseAfter(contender)
			s.Completes(back)
			s.saysRolledBack(back, incumbent)
			s.readyPods(back, 4)
			s.readyPods(incumbent, 0)
			s.readyPods(contender, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
			incumbent, contender := s.vanguardOverAllIn(4)
			s.Steps(contender, 1)
			s.WaitsForCommand(contender, 1)
			s.readyPods(incumbent, 2)
			s.breaks(contender)
			rb := s.blocksWith(func(spec *shipper.RolloutBlockSpec) {
				spec.Allow = []shipper.RolloutBlockChange{
					shipper.RolloutBlockAbort, shipper.RolloutBlockRetreat, shipper.RolloutBlockRollback,
				}
			})
			block := rb.Namespace + "/" + rb.Name
			said := []string{"rollouts blocked by: " + block, "lets pass: Abort, Retreat, Rollback"}
			s.forbidden("advancing", s.TryStep(contender, 2), said...)
			s.forbidden("rolling something else out", s.TryEdit(more), said...)
			goesBack(s, incumbent, contender)
			s.endpoints(4)
			s.forbidden("rolling something else out", s.TryEdit(more, client.DryRunAll), said...)
		})
	}
}

// releaseAfter waits until the newest release of the Application is another, and names it.
func (s *fixture) releaseAfter(before string) (name string) {
	s.Helper()
	s.Eventually("the newest release", "another", func() (string, error) {
		app := &shipper.Application{}
		err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.App}, app)
		if n := len(app.Status.History); n > 0 {
			name = app.Status.History[n-1]
		}
		if name != "" && name != before {
			return "another", err
		}
		return name, err
	})
	return name
}

// saysRolledBack waits until the Application reports the rollback and its spec no longer requests one.
func (s *fixture) saysRolledBack(release, to string) {
	s.Helper()
	s.Eventually("what the application says of its rollback", fmt.Sprintf("True Release %q has the environment of %q, done", release, to),
		func() (string, error) {
			app := &shipper.Application{}
			err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: appName}, app)
			c := shipper.FindCondition(app.Status.Conditions, shipper.ApplicationRolledBack)
			switch {
			case c == nil:
				return "nothing", err
			case app.Spec.RollbackTo != nil:
				return "it is asked for still", err
			}
			return string(c.Status) + " " + c.Message + ", done", err
		})
}
