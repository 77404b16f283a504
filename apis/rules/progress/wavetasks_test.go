// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/progress"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestAWaveWaitsBeforeTheNextBegins(t *testing.T) {
	waits := func(step int32) *shipper.Release {
		s := waved(shipper.AdvanceAutomatic)
		s.Waves[0].AfterTasks = &shipper.WaveTasks{Wait: "1h"}
		r := inWave(s, 0, step)
		r.Status.AchievedStep = nil
		return r
	}
	passed := waits(2)
	achieved(passed)
	unconverged := waits(2)
	unconverged.Status.Progress.ConvergedTime = nil
	awaited := strategy.StepState{Converged: true, Begun: true, Incumbent: true, Waiting: true, Awaited: "wave canary waits"}
	approving := strategy.StepState{Converged: true, Begun: true, Incumbent: true, Approving: true, Awaited: "1 of 2 approvals"}
	ahead := strategy.StepState{Converged: true, Achieved: true, Begun: true, Incumbent: true}
	type decided struct {
		Reason string
		End    *metav1.Time
		Again  time.Duration
		Move   *progress.Move
	}
	end := new(at(time.Hour))
	for sentence, tc := range map[string]struct {
		release *shipper.Release
		step    strategy.StepState
		after   time.Duration
		want    decided
	}{
		"its clusters have just got everything": {
			unconverged, awaited, 0, decided{shipper.AdvancingAwaitingTime, end, time.Hour, nil},
		},
		"twenty minutes later, also for another reconciler": {
			waits(2), awaited, 20 * time.Minute, decided{shipper.AdvancingAwaitingTime, end, 40 * time.Minute, nil},
		},
		"while it waits for approvals, too": {
			waits(2), approving, 20 * time.Minute, decided{shipper.AdvancingAwaitingApproval, end, 40 * time.Minute, nil},
		},
		"when it has waited": {
			passed, ahead, time.Hour, decided{shipper.AdvancingSoaking, end, 0, &progress.Move{ToWave: 1, Why: progress.StepDue}},
		},
		"not at the step before": {
			waits(1), approving, time.Minute, decided{shipper.AdvancingAwaitingApproval, nil, 0, nil},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			d := progress.Decide(progress.Observed{Release: tc.release, Step: tc.step, Since: noon.Add(-time.Hour)}, noon.Add(tc.after))
			got := decided{"", d.Progress.WaitEndTime, d.Again, d.Move}
			if c := shipper.FindCondition(d.Conditions, shipper.ReleaseAdvancing); c != nil {
				got.Reason = c.Reason
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFailedCheckOfAWaveKeepsTheNextFromBeginning(t *testing.T) {
	for onFailure, want := range map[shipper.FailurePolicy]struct {
		move  *progress.Move
		abort bool
	}{
		shipper.OnFailureHold:    {},
		shipper.OnFailureRetreat: {move: &progress.Move{To: 0, ToWave: 1, Why: progress.RolloutFailed}},
		shipper.OnFailureAbort:   {abort: true},
	} {
		s := waved(shipper.AdvanceAutomatic)
		s.Waves, s.OnFailure = append(s.Waves, shipper.Wave{Name: "rest"}), onFailure
		s.Waves[1].AfterTasks = &shipper.WaveTasks{Wait: "1h", Checks: []shipper.StepCheck{{Check: "errors"}}}
		r := inWave(s, 1, 2)
		r.Status.AchievedStep.Step = 1
		first := progress.Decide(progress.Observed{Release: r, Step: bad, Since: noon.Add(-time.Hour)}, noon.Add(time.Hour))
		if f := first.Progress.Failure; first.Acts() || f == nil || f.Check != "errors" || f.Cluster != "eu-2" || f.Wave != 1 || f.Step != 2 {
			t.Fatalf("%s: the failure is %+v, and it acts: %t", onFailure, f, first.Acts())
		}
		r.Status.Progress = first.Progress
		then := progress.Decide(progress.Observed{Release: r, Step: bad, Since: noon.Add(-time.Hour)}, noon.Add(time.Hour))
		if diff := cmp.Diff(want.move, then.Move); diff != "" || then.Abort != want.abort {
			t.Errorf("%s: aborts %t, moves (-want +got):\n%s", onFailure, then.Abort, diff)
		}
	}
}
