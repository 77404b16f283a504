// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestThePolicyKeepsAWaveUntilItsTasksHavePassed evaluates control.shipper.booking.com: the next wave begins when the one before is done.
func TestThePolicyKeepsAWaveUntilItsTasksHavePassed(t *testing.T) {
	policy := policyOf(t, "control.shipper.booking.com")
	checks := []shipper.StepCheck{{Check: "errors"}, {Check: "slow", DryRun: true}}
	phases := func(errors, slow shipper.CheckPhase) []shipper.ReleaseCheck {
		return []shipper.ReleaseCheck{{Name: "errors", Phase: errors}, {Name: "slow", Phase: slow, DryRun: true}}
	}
	failed, passed, runs := shipper.CheckHasFailed, shipper.CheckPassed, shipper.CheckRunning
	for sentence, tc := range map[string]struct {
		tasks    *shipper.WaveTasks
		edit     func(*shipper.ReleaseStatus)
		admitted bool
	}{
		"a wave without tasks":               {nil, func(*shipper.ReleaseStatus) {}, true},
		"one whose checks have not begun":    {&shipper.WaveTasks{Checks: checks}, func(*shipper.ReleaseStatus) {}, false},
		"one whose checks run":               {&shipper.WaveTasks{Checks: checks}, measured(phases(runs, passed)), false},
		"one whose check has failed":         {&shipper.WaveTasks{Checks: checks}, measured(phases(failed, passed)), false},
		"one whose checks have passed":       {&shipper.WaveTasks{Checks: checks}, measured(phases(passed, passed)), true},
		"one whose dry check alone fails":    {&shipper.WaveTasks{Checks: checks}, measured(phases(passed, failed)), true},
		"one that checks without clusters":   {&shipper.WaveTasks{Checks: checks}, empty, true},
		"one that was gone back to":          {&shipper.WaveTasks{Checks: checks}, movedBack, true},
		"one that waits":                     {&shipper.WaveTasks{Wait: "1h"}, unachieved, false},
		"one that has waited":                {&shipper.WaveTasks{Wait: "1h"}, func(*shipper.ReleaseStatus) {}, true},
		"one that is checked and unapproved": {&shipper.WaveTasks{Approvals: 1, Checks: checks}, measured(phases(passed, passed)), false},
		"one that is approved and unchecked": {&shipper.WaveTasks{Approvals: 1, Checks: checks}, approved, false},
	} {
		for content, before := range map[string]*shipper.Release{"a chart": waiting(tc.tasks), "resources": placedWaiting(tc.tasks)} {
			tc.edit(&before.Status)
			after := before.DeepCopy()
			after.Spec.TargetWave, after.Spec.TargetStep = new(int32(1)), 0
			got := refusalsOf(t, policy, "releases", unstructuredOf(t, before), unstructuredOf(t, after), nil)
			if is := len(got) == 0; is != tc.admitted {
				t.Errorf("%s, of %s: %q", sentence, content, got)
			}
			if is := len(refusalsOf(t, policy, "releases", unstructuredOf(t, before), unstructuredOf(t, after), granted{
				"skip releases.shipper.booking.com default/web-1",
			})) == 0; !is {
				t.Errorf("%s, of %s: it is refused to a user with the verb skip", sentence, content)
			}
			after.Spec.TargetWave = new(int32(2))
			if len(refusalsOf(t, policy, "releases", unstructuredOf(t, before), unstructuredOf(t, after), nil)) == 0 {
				t.Errorf("%s, of %s: a wave is passed over", sentence, content)
			}
		}
	}
}

// TestThePolicyKeepsTheFirstStepOfAWaveUntilItsBeforeTasksHavePassed evaluates control.shipper.booking.com.
func TestThePolicyKeepsTheFirstStepOfAWaveUntilItsBeforeTasksHavePassed(t *testing.T) {
	policy := policyOf(t, "control.shipper.booking.com")
	tasks := &shipper.WaveTasks{Approvals: 1}
	by := func(users ...string) *shipper.ReleaseApprovals {
		return &shipper.ReleaseApprovals{Required: 1, Users: users}
	}
	for sentence, tc := range map[string]struct {
		from, to [2]int32 // wave and step
		edit     func(*shipper.Release)
		admitted bool
	}{
		"the next step, approved": {[2]int32{1, 0}, [2]int32{1, 1}, func(r *shipper.Release) {
			r.Status.Progress.BeforeApprovals = by("bob")
		}, true},
		"by a status that lacks the approval": {[2]int32{1, 0}, [2]int32{1, 1}, func(*shipper.Release) {}, false},
		"by an approval of the step": {
			[2]int32{1, 0}, [2]int32{1, 1}, func(r *shipper.Release) { r.Status.Progress.Approvals = by("bob") }, false,
		},
		"by one that is refused": {[2]int32{1, 0}, [2]int32{1, 1}, func(r *shipper.Release) {
			r.Status.Progress.BeforeApprovals = by("bob")
			r.Status.Progress.BeforeApprovals.RejectedBy = "eve"
		}, false},
		"by approvals without the step": {[2]int32{1, 0}, [2]int32{1, 1}, func(r *shipper.Release) {
			r.Status.Progress.BeforeApprovals = by("bob")
			unachieved(&r.Status)
		}, false},
		"of the first wave": {[2]int32{0, 0}, [2]int32{0, 1}, func(r *shipper.Release) {
			r.Spec.Environment.Strategy.Waves[0].BeforeTasks = &shipper.WaveTasks{Wait: "1h"}
			r.Status.AchievedStep = nil
		}, false},
		"of the first wave, which waits for nothing": {[2]int32{0, 0}, [2]int32{0, 1}, func(*shipper.Release) {}, true},
		"the first step of the next wave":            {[2]int32{0, 1}, [2]int32{1, 0}, func(*shipper.Release) {}, true},
		"a later step of the next wave":              {[2]int32{0, 1}, [2]int32{1, 1}, func(*shipper.Release) {}, false},
		"after a move back": {
			[2]int32{1, 0}, [2]int32{1, 1}, func(r *shipper.Release) { r.Status.Progress.MovedBack = true }, true,
		},
		"a move back": {[2]int32{1, 0}, [2]int32{0, 1}, func(*shipper.Release) {}, true},
		"a wave of one step": {[2]int32{1, 0}, [2]int32{2, 0}, func(r *shipper.Release) {
			r.Spec.Environment.Strategy.Steps = r.Spec.Environment.Strategy.Steps[:1]
		}, false},
	} {
		before := waiting(nil)
		s := before.Spec.Environment.Strategy
		s.Waves = append(s.Waves, shipper.Wave{Name: "last"})
		s.Waves[1].BeforeTasks = tasks
		before.Spec.TargetWave, before.Spec.TargetStep = &tc.from[0], tc.from[1]
		before.Status.AchievedStep = &shipper.AchievedStep{Wave: tc.from[0], Step: tc.from[1], Name: "x"}
		before.Status.Progress.Wave, before.Status.Progress.Step = tc.from[0], tc.from[1]
		tc.edit(before)
		after := before.DeepCopy()
		after.Spec.TargetWave, after.Spec.TargetStep = &tc.to[0], tc.to[1]
		got := refusalsOf(t, policy, "releases", unstructuredOf(t, before), unstructuredOf(t, after), nil)
		if is := len(got) == 0; is != tc.admitted {
			t.Errorf("%s: %q", sentence, got)
		}
	}
}

// placedWaiting is waiting for a Release with resources, which have no steps.
func placedWaiting(tasks *shipper.WaveTasks) *shipper.Release {
	rel := waiting(tasks)
	rel.Spec.Environment.Strategy.Steps, rel.Spec.Environment.Resources, rel.Spec.TargetStep = nil, &shipper.Resources{}, 0
	rel.Status.AchievedStep, rel.Status.Progress.Step = &shipper.AchievedStep{}, 0
	return rel
}

// waiting is a Release at the last step of its first wave, which its status says is achieved.
func waiting(tasks *shipper.WaveTasks) *shipper.Release {
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1", Generation: 4}}
	rel.Spec.TargetStep, rel.Spec.TargetWave = 1, new(int32)
	rel.Spec.Environment.Strategy = &shipper.RolloutStrategy{
		Steps: []shipper.RolloutStrategyStep{{Name: "staging"}, {Name: "full on"}},
		Waves: []shipper.Wave{{Name: "canary", AfterTasks: tasks}, {Name: "rest"}},
	}
	rel.Status = shipper.ReleaseStatus{
		ObservedGeneration: 4, AchievedStep: &shipper.AchievedStep{Step: 1, Name: "full on"},
		Progress:   &shipper.ReleaseProgress{Step: 1, RequestedTime: metav1.Unix(0, 0)},
		Conditions: []shipper.Condition{{Type: shipper.ReleaseStrategyExecuted, Status: "True"}},
		Waves:      []shipper.ReleaseWave{{Name: "canary", Clusters: 1}, {Name: "rest", Clusters: 1}},
	}
	return rel
}

func measured(checks []shipper.ReleaseCheck) func(*shipper.ReleaseStatus) {
	return func(s *shipper.ReleaseStatus) { s.Progress.Checks = checks }
}

func empty(s *shipper.ReleaseStatus) { s.Waves[0].Clusters = 0 }

func movedBack(s *shipper.ReleaseStatus) { s.Progress.MovedBack = true }

func unachieved(s *shipper.ReleaseStatus) { s.AchievedStep.Step, s.Conditions[0].Status = 0, "False" }

func approved(s *shipper.ReleaseStatus) {
	s.Progress.Approvals = &shipper.ReleaseApprovals{Required: 1, Users: []string{"bob"}}
}

func unstructuredOf(t *testing.T, o runtime.Object) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: fields}
}
