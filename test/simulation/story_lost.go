// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// lostStory loses a cluster in the middle of a rollout with a deadline and a policy for failures, and has it back: nothing fails, nothing
// goes back, and the rollout ends when the cluster is there again.
func lostStory() Story {
	contender := ""
	return Story{
		Name: "lost", Shared: true,
		Begin: func(f *Fixture) {
			f.Bystand()
			f.Creates(f.Application(appName, "0.0.1", replicaCount, allIn()))
			f.Completes(f.Release(0))
		},
		Parts: []Part{{
			Name: "lost and returned", Floor: replicaCount,
			Act: func(f *Fixture) {
				s := vanguard()
				s[0].After, s[1].After = "10s", "10s"
				f.Edits(func(app *shipper.Application) {
					app.Spec.Template.Chart.Version, app.Spec.Template.Strategy.Steps = "0.0.2", s
					app.Spec.Template.Strategy.ProgressDeadline, app.Spec.Template.Strategy.OnFailure = "3m", shipper.OnFailureAbort
				})
				contender = f.Release(1)
				f.Eventually("the step achieved", "0", func() string { return f.achieved(contender) })
				f.fail(Fault{Kind: Refuse, Host: clusterName(1), For: 20 * time.Minute})
				f.Completes(contender)
			},
		}},
	}
}
