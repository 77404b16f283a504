// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Blocks creates a RolloutBlock in the story's namespace.
func (f *Fixture) Blocks(name string) *shipper.RolloutBlock {
	f.T.Helper()
	b := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	b.Spec.Message = "DNS issues"
	f.Creates(b)
	return b
}

// IsRefused requires that what a user tries is refused because of a block, once a replica of the webhook knows of it.
func (f *Fixture) IsRefused(what string, try func() error) {
	f.T.Helper()
	f.Eventually(what, "forbidden", func() string {
		switch err := try(); {
		case err == nil:
			f.laws.broken(3, "%s is admitted while a block is in effect", what)
			return "forbidden"
		case apierrors.IsForbidden(err):
			return "forbidden"
		default:
			return err.Error()
		}
	})
}

// blockStory has a block that begins in the middle of a rollout which goes on by itself, and ends: nothing moves between.
func blockStory() Story {
	contender := ""
	return Story{
		Name: "block", Shared: true,
		Begin: func(f *Fixture) {
			f.Bystand()
			f.Creates(f.Application(appName, "0.0.1", replicaCount, allIn()))
			f.Completes(f.Release(0))
		},
		Parts: []Part{
			{
				Name: "held", Floor: replicaCount,
				Act: func(f *Fixture) {
					s := vanguard()
					s[0].After, s[1].After = "1m", "1m"
					f.Upgrades("0.0.2", s)
					contender = f.Release(1)
					f.Eventually("the step achieved", "0", func() string { return f.achieved(contender) })
					f.Blocks("stop")
					time.Sleep(10 * time.Second) // the webhook's replicas see it
					f.IsRefused("a step", func() error { return f.TryStep(contender, 1) })
					f.IsRefused("an edit", func() error {
						return f.TryEdit(func(app *shipper.Application) { app.Spec.Template.Chart.Version = "0.0.1" })
					})
					time.Sleep(5 * time.Minute)
				},
				Check: func(f *Fixture) {
					if got := f.achieved(contender); got != "0" || f.Get(contender).Spec.TargetStep != 0 {
						f.laws.broken(3, "%s has achieved step %s while it was blocked", contender, got)
					}
				},
			},
			{Name: "goes on", Floor: replicaCount, Act: func(f *Fixture) {
				f.Deletes(&shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stop"}})
				f.Completes(contender)
			}},
		},
	}
}
