// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/env"
)

// TestThePolicyAloneKeepsWaves passes waves, with both webhook configurations deleted.
func TestThePolicyAloneKeepsWaves(t *testing.T) {
	ns := namespace(t)
	smoke(t, ns)
	r := rollOut(t, ns, func(app *shipper.Application) {
		s := app.Spec.Template.Strategy
		s.Steps = []shipper.RolloutStrategyStep{ask.Step("staging", 100, 1, 100, 0), ask.Step("full on", 0, 100, 0, 100)}
		s.Waves = []shipper.Wave{
			{Name: "a", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "a"}},
				AfterTasks: &shipper.WaveTasks{Approvals: 1, Wait: "1h", Checks: []shipper.StepCheck{{Check: "smoke"}}}},
			{Name: "b", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "b"}},
				BeforeTasks: &shipper.WaveTasks{Approvals: 1}}, {Name: "c"},
		}
	})
	grant(t, "wave-skipper", "skip", "releases")
	grant(t, "wave-approver", "approve", "releases")
	withoutWebhooks(t)
	reconciler := as(t, reconcilerUser)
	moveTo := func(user string, wave, step int32, edits ...func(*shipper.Release)) error {
		rel := r.rel.DeepCopy()
		rel.Spec.TargetWave, rel.Spec.TargetStep = &wave, step
		for _, edit := range edits {
			edit(rel)
		}
		return as(t, user).Update(t.Context(), rel, client.DryRunAll)
	}
	refuses := func(what string, err func() error) {
		t.Helper()
		env.Eventually(t, what, func(context.Context) error {
			if e := err(); !apierrors.IsForbidden(e) && !apierrors.IsInvalid(e) {
				return fmt.Errorf("not refused: %w", errors.Join(e, errors.New("waiting")))
			}
			return nil
		})
	}
	admits := func(what string, err func() error) {
		t.Helper()
		env.Eventually(t, what, func(context.Context) error { return err() })
	}
	var approvers, beginners []string
	var checks []shipper.ReleaseCheck
	goesTo := func(wave, step int32, done bool) {
		t.Helper()
		env.Eventually(t, "the position to be written", func(ctx context.Context) error {
			if err := admin.Get(ctx, client.ObjectKeyFromObject(r.rel), r.rel); err != nil {
				return err
			}
			was := r.rel.DeepCopy()
			r.rel.Spec.TargetWave, r.rel.Spec.TargetStep = &wave, step
			if wave != position.Of(was).Wave || step != was.Spec.TargetStep {
				stampMove(r.rel, was)
				if err := reconciler.Update(ctx, r.rel); err != nil {
					return err
				}
			}
			if !done {
				return nil
			}
			r.rel.Status.ObservedGeneration = r.rel.Generation
			r.rel.Status.AchievedStep = &shipper.AchievedStep{Step: step, Wave: wave, Name: "x"}
			r.rel.Status.Progress = &shipper.ReleaseProgress{Step: step, Wave: wave, RequestedTime: metav1.Now()}
			r.rel.Status.Progress.Approvals = &shipper.ReleaseApprovals{Required: 1, Users: approvers}
			r.rel.Status.Progress.BeforeApprovals = &shipper.ReleaseApprovals{Required: 1, Users: beginners}
			r.rel.Status.Progress.Checks = checks
			r.rel.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseStrategyExecuted, Status: "True", LastTransitionTime: metav1.Now()}}
			return reconciler.Status().Update(ctx, r.rel)
		})
	}
	refuses("a wave that is not done", func() error { return moveTo("dev", 1, 0) })
	refuses("a wave that there is not", func() error { return moveTo("dev", 3, 0) })
	admits("a user with the verb skip", func() error { return moveTo("wave-skipper", 1, 0) })
	refuses("the waves of clusters", func() error {
		return moveTo("dev", 0, 0, ask.ReleaseAnnotated(shipper.ReleaseWavesAnnotation, "eu=0"))
	})
	goesTo(0, 0, true)
	refuses("a wave before its last step", func() error { return moveTo("dev", 1, 0) })
	goesTo(0, 1, true)
	refuses("a wave that is not approved", func() error { return moveTo("dev", 1, 0) })
	refuses("a wave that needs no approval any more", func() error {
		return moveTo("dev", 1, 0, func(rel *shipper.Release) { rel.Spec.Environment.Strategy.Waves[0].AfterTasks = nil })
	})
	refuses("more clusters that may fail", func() error {
		return moveTo("dev", 0, 1, func(rel *shipper.Release) { rel.Spec.Environment.Strategy.MaxFailures = new(intstr.FromInt32(9)) })
	})
	refuses("a wave in which more clusters may fail", func() error {
		return moveTo("dev", 0, 1, func(rel *shipper.Release) {
			rel.Spec.Environment.Strategy.Waves[0].MaxFailures = new(intstr.FromString("100%"))
		})
	})
	approvers = []string{"bob"}
	goesTo(0, 1, true)
	refuses("a wave whose checks have not begun", func() error { return moveTo("dev", 1, 0) })
	refuses("a wave that needs no checks any more", func() error {
		return moveTo("dev", 1, 0, func(rel *shipper.Release) { rel.Spec.Environment.Strategy.Waves[0].AfterTasks.Checks = nil })
	})
	checks = []shipper.ReleaseCheck{{Name: "smoke", Phase: shipper.CheckHasFailed}}
	goesTo(0, 1, true)
	refuses("a wave whose check has failed", func() error { return moveTo("dev", 1, 0) })
	checks[0].Phase = shipper.CheckPassed
	goesTo(0, 1, true)
	admits("the next wave", func() error { return moveTo("dev", 1, 0) })
	refuses("two waves at once", func() error { return moveTo("dev", 2, 0) })
	refuses("two waves at once, for Shipper", func() error {
		return moveTo(reconcilerUser, 2, 0, func(rel *shipper.Release) {
			rel.Annotations[shipper.ReleaseMovedAnnotation] = stamp.Move(r.rel, rel, reconcilerUser, "StepDue", metav1.Now())
		})
	})
	admits("a move that is noted", func() error {
		return moveTo("dev", 1, 0, func(rel *shipper.Release) {
			rel.Annotations[shipper.ReleaseMovedAnnotation] = stamp.Move(r.rel, rel, "dev", "", metav1.Now())
		})
	})
	refuses("a move that is noted without its wave", func() error {
		return moveTo("dev", 1, 0, func(rel *shipper.Release) {
			wrong := rel.DeepCopy()
			wrong.Spec.TargetWave = new(int32)
			rel.Annotations[shipper.ReleaseMovedAnnotation] = stamp.Move(r.rel, wrong, "dev", "", metav1.Now())
		})
	})
	block := ask.Block(ns + "/freeze")
	block.Spec.Allow = []shipper.RolloutBlockChange{shipper.RolloutBlockRetreat}
	create(t, admin, block)
	refuses("a later wave with a lower step, under a block that allows Retreat", func() error { return moveTo("dev", 1, 0) })
	refuses("a later wave beside a hold, under a block", func() error {
		return moveTo("dev", 1, 1, func(rel *shipper.Release) { rel.Spec.Hold = "lunch" })
	})
	admits("a lower step, under a block that allows Retreat", func() error { return moveTo("dev", 0, 0) })
	if err := admin.Delete(t.Context(), block); err != nil {
		t.Fatal(err)
	}
	goesTo(1, 0, false)
	refuses("a client that does not know of waves", func() error {
		rel := r.rel.DeepCopy()
		rel.Spec.TargetWave, rel.Spec.TargetStep = nil, 1
		return as(t, "dev").Update(t.Context(), rel, client.DryRunAll)
	})
	admits("a move back to the first wave", func() error { return moveTo("dev", 0, 1) })
	goesTo(1, 0, true)
	refuses("a wave whose step alone is approved", func() error { return moveTo("dev", 1, 1) })
	refuses("a wave that begins without approvals from now on", func() error {
		return moveTo("dev", 1, 1, func(rel *shipper.Release) { rel.Spec.Environment.Strategy.Waves[1].BeforeTasks = nil })
	})
	admits("a user with the verb skip in it", func() error { return moveTo("wave-skipper", 1, 1) })
	approve := func(user string, edits ...func(*shipper.ApprovalSpec)) error {
		a := &shipper.Approval{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "begins-"}, Spec: shipper.ApprovalSpec{
			Release: r.rel.Name, Step: new(int32), Wave: new(int32(1)), Task: shipper.ApprovalBefore, By: shipper.ApprovalUser{Username: user},
		}}
		for _, edit := range edits {
			edit(&a.Spec)
		}
		return as(t, user).Create(t.Context(), a, client.DryRunAll)
	}
	admits("an approval of its beginning", func() error { return approve("wave-approver") })
	refuses("one by a user who may not", func() error { return approve("dev") })
	refuses("one in the name of another", func() error {
		return approve("wave-approver", func(a *shipper.ApprovalSpec) { a.By.Username = "ann" })
	})
	refuses("one of a task that there is not", func() error {
		return approve("wave-approver", func(a *shipper.ApprovalSpec) { a.Task = "After" })
	})
	beginners = []string{"bob"}
	goesTo(1, 0, true)
	admits("the next step of a wave that was approved", func() error { return moveTo("dev", 1, 1) })
	refuses("checks before a wave", func() error {
		app := ask.Application()
		app.Namespace, app.Name = ns, "checked"
		app.Spec.Template.Strategy.Waves = []shipper.Wave{{Name: "a", BeforeTasks: &shipper.WaveTasks{
			Approvals: 1, Checks: []shipper.StepCheck{{Check: "smoke"}},
		}}}
		return admin.Create(t.Context(), app, client.DryRunAll)
	})

	placesResources(t, r.rel)
	approvers, checks = nil, nil
	refuses("a wave of resources that is not done", func() error { return moveTo("dev", 1, 0) })
	goesTo(0, 0, true)
	refuses("a wave of resources that is not approved", func() error { return moveTo("dev", 1, 0) })
	approvers = []string{"bob"}
	goesTo(0, 0, true)
	refuses("a wave of resources whose checks have not begun", func() error { return moveTo("dev", 1, 0) })
	checks = []shipper.ReleaseCheck{{Name: "smoke", Phase: shipper.CheckPassed}}
	goesTo(0, 0, true)
	admits("the next wave of resources", func() error { return moveTo("dev", 1, 0) })
	refuses("two waves of resources at once", func() error { return moveTo("dev", 2, 0) })
}

// placesResources makes a Release to be one of resources, in its first wave: its strategy has no steps.
func placesResources(t *testing.T, rel *shipper.Release) {
	t.Helper()
	env.Eventually(t, "the Release to have resources", func(ctx context.Context) error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(rel), rel); err != nil {
			return err
		}
		of := &rel.Spec.Environment
		of.Chart, of.Values, of.ResourcesDigest, of.Strategy.Steps = shipper.Chart{}, nil, strings.Repeat("0", 64), nil
		of.Resources = &shipper.Resources{Select: []shipper.ResourceSelector{{Kind: "ConfigMap", Name: "a"}}}
		for i := range of.Strategy.Waves {
			of.Strategy.Waves[i].BeforeTasks = nil // they are not for resources
		}
		rel.Spec.TargetWave, rel.Spec.TargetStep = new(int32), 0
		return admin.Update(ctx, rel)
	})
}

// stampMove notes a move as Shipper does for an abort, which passes waves.
func stampMove(rel, was *shipper.Release) {
	rel.Annotations[shipper.ReleaseMovedAnnotation] = stamp.Move(was, rel, reconcilerUser, "NewerAborted", metav1.Now())
}
