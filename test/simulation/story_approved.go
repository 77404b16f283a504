// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/position"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// wavesApprovedStory rolls out by waves that begin by themselves, the second once another user has approved the first.
func wavesApprovedStory() Story {
	return Story{
		Name: "waves-approved", Clusters: 2,
		Begin: func(f *Fixture) {
			f.Creates(f.Application(appName, "0.0.1", replicaCount, allIn()))
			f.Completes(f.Release(0))
		},
		Parts: []Part{{Name: "approved", Floor: replicaCount, Act: func(f *Fixture) {
			f.Edits(func(app *shipper.Application) {
				app.Spec.Template.Chart.Version, app.Spec.Template.Strategy = "0.0.2", byWaves(shipper.AdvanceAutomatic)
				app.Spec.Template.Strategy.Waves[0].AfterTasks = &shipper.WaveTasks{Approvals: 1}
			})
			contender := f.Release(1)
			f.Eventually("the canary", "wave 0 step 2: AwaitingApproval", func() string {
				rel := f.Get(contender)
				reason := ""
				if c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseAdvancing); c != nil {
					reason = c.Reason
				}
				return fmt.Sprintf("wave %d step %d: %s", position.Wave(rel), rel.Spec.TargetStep, reason)
			})
			f.approves(contender, 2)
			f.Completes(contender)
		}}},
	}
}

// approves has another user than the requester approve a step.
func (f *Fixture) approves(release string, step int32) {
	f.T.Helper()
	f.approvesBy(release, shipper.ApprovalSpec{Release: release, Step: &step})
}

// approvesBy has another user than the requester create an Approval.
func (f *Fixture) approvesBy(name string, spec shipper.ApprovalSpec) {
	f.T.Helper()
	approver, again := f.clientOf(approverName), false
	f.persist("approving "+spec.Release, func() error {
		err := approver.Create(f.Ctx, &shipper.Approval{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec})
		if again && (apierrors.IsAlreadyExists(err) || apierrors.IsInvalid(err)) {
			return nil // the answer was lost
		}
		again = true
		return err
	})
}
