// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"

	"shipper.dev/shipper/apis/rules/position"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// wavesBeforeStory rolls out by waves that begin by themselves once others have approved that, the second also after a time and after the
// end of the first was approved. Law 18 judges each write to a cluster.
func wavesBeforeStory() Story {
	return Story{
		Name: "waves-before", Clusters: 2,
		Begin: func(f *Fixture) {
			f.Creates(f.Application(appName, "0.0.1", replicaCount, allIn()))
			f.Completes(f.Release(0))
		},
		Parts: []Part{{Name: "approved", Floor: replicaCount, Act: func(f *Fixture) {
			f.Edits(func(app *shipper.Application) {
				s := byWaves(shipper.AdvanceAutomatic)
				s.Waves[0].BeforeTasks = &shipper.WaveTasks{Approvals: 1}
				s.Waves[0].AfterTasks = &shipper.WaveTasks{Approvals: 1}
				s.Waves[1].BeforeTasks = &shipper.WaveTasks{Approvals: 1, Wait: "40s"}
				app.Spec.Template.Chart.Version, app.Spec.Template.Strategy = "0.0.2", s
			})
			contender := f.Release(1)
			f.approvesBeginning(contender, 0)
			f.Eventually("the end of the canary", "wave 0 step 2: "+shipper.AdvancingAwaitingApproval, func() string {
				return fmt.Sprintf("wave %d %s", position.Wave(f.Get(contender)), f.awaits(contender))
			})
			f.approves(contender, 2)
			f.approvesBeginning(contender, 1)
			f.Completes(contender)
		}}},
	}
}

// approvesBeginning has another user than the requester approve that a wave begins, once a Release waits for that.
func (f *Fixture) approvesBeginning(release string, wave int32) {
	f.T.Helper()
	f.Eventually("a wave that waits to begin", fmt.Sprintf("wave %d, 0 of 1", wave), func() string {
		p := f.Get(release).Status.Progress
		if p == nil || p.BeforeApprovals == nil || p.Step > 0 {
			return "none"
		}
		return fmt.Sprintf("wave %d, %d of %d", p.Wave, len(p.BeforeApprovals.Users), p.BeforeApprovals.Required)
	})
	f.approvesBy(fmt.Sprintf("%s-begins-%d", release, wave), shipper.ApprovalSpec{
		Release: release, Step: new(int32), Wave: &wave, Task: shipper.ApprovalBefore,
	})
}
