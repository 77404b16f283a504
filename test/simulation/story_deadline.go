// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// deadlineStory loses a cluster while a step with a deadline is under way, for longer than the deadline: nothing fails, and the step is
// achieved when the cluster is there again.
func deadlineStory() Story {
	contender := ""
	return Story{
		Name: "deadline",
		Begin: func(f *Fixture) {
			f.Creates(f.Application(appName, "0.0.1", replicaCount, allIn()))
			f.Completes(f.Release(0))
			f.Edits(func(app *shipper.Application) {
				app.Spec.Template.Chart.Version, app.Spec.Template.Strategy.Steps = "0.0.2", vanguard()
				app.Spec.Template.Strategy.ProgressDeadline, app.Spec.Template.Strategy.OnFailure = "3m", shipper.OnFailureAbort
			})
			contender = f.Release(1)
			f.WaitsForCommand(contender, 0)
		},
		Parts: []Part{{
			Name: "lost while it moves", Floor: replicaCount,
			Act: func(f *Fixture) {
				f.Steps(contender, 1)
				f.fail(Fault{Kind: Refuse, Host: clusterName(1), For: 20 * time.Minute})
				f.WaitsForCommand(contender, 1)
				f.Steps(contender, 2)
				f.Completes(contender)
			},
		}},
	}
}
