// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// failureStory has a check that fails, after which the rollout goes back by itself, and an image that cannot be pulled, after which it is
// aborted by itself.
func failureStory() Story {
	incumbent, contender := "", ""
	return Story{
		Name: "failure", Fails: true,
		Begin: func(f *Fixture) {
			f.Bystand()
			f.Creates(f.Application(appName, "0.0.1", replicaCount, allIn()))
			incumbent = f.Release(0)
			f.Completes(incumbent)
			f.Creates(&shipper.Check{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "fails"}, Spec: shipper.CheckSpec{
				Interval: "5s", Timeout: "5s", Count: 2, HTTP: &shipper.HTTPCheck{URL: checksURL}, Pass: "response.status == 500",
			}})
		},
		Parts: []Part{{
			Name: "goes back", Floor: replicaCount,
			Act: func(f *Fixture) {
				s := vanguard()
				s[0].After, s[1].After = "5s", "1m"
				s[1].Checks = []shipper.StepCheck{{Check: "fails"}}
				f.Edits(func(app *shipper.Application) {
					app.Spec.Template.Chart.Version, app.Spec.Template.Strategy.Steps = "0.0.2", s
					app.Spec.Template.Strategy.OnFailure = shipper.OnFailureRetreat
				})
				contender = f.Release(1)
				f.Eventually("what became of "+contender, "failed at step 0", func() string {
					rel := f.Get(contender)
					if !shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseFailed) || rel.Spec.TargetStep != 0 {
						return "under way"
					}
					return "failed at step " + f.achieved(contender)
				})
			},
		}, {
			Name: "aborted", Floor: replicaCount,
			Act: func(f *Fixture) {
				s := vanguard()
				s[0].After, s[1].After = "5s", "5s"
				f.Edits(func(app *shipper.Application) {
					(*app.Spec.Template.Values)["image"] = map[string]any{"tag": "broken"}
					app.Spec.Template.Strategy = &shipper.RolloutStrategy{
						Steps: s, ProgressDeadline: "2m", OnFailure: shipper.OnFailureAbort,
					}
				})
				broken := f.Generation(2)
				f.IsGone("releases", broken)
			},
		}},
	}
}
