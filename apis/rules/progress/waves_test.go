// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/progress"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// waved is a strategy with two waves.
func waved(advance shipper.AdvancePolicy, after ...shipper.Duration) *shipper.RolloutStrategy {
	s := steps(after...)
	s.Waves, s.Advance = []shipper.Wave{{Name: "canary"}, {Name: "production"}}, advance
	return s
}

// inWave is a Release at a position that it has achieved, a minute after it converged.
func inWave(s *shipper.RolloutStrategy, wave, step int32) *shipper.Release {
	r := rel(s, step, &shipper.ReleaseProgress{Step: step, Wave: wave, RequestedTime: at(0), ConvergedTime: new(at(0))})
	r.Spec.TargetWave = wave
	achieved(r)
	r.Status.AchievedStep.Wave = wave
	return r
}

func TestDecideByWaves(t *testing.T) {
	failed := func(s *shipper.RolloutStrategy) *shipper.RolloutStrategy {
		s.ProgressDeadline, s.OnFailure = "5m", shipper.OnFailureRetreat
		return s
	}
	lost := func(wave, step int32) *shipper.Release {
		r := inWave(failed(waved(shipper.AdvanceAutomatic)), wave, step)
		r.Status.Progress.ConvergedTime, r.Status.Progress.DeadlineTime = nil, new(at(-time.Minute))
		r.Status.Progress.Failure = &shipper.ReleaseFailure{
			Step: step, Wave: wave, Reason: shipper.ProgressDeadlineExceeded, Action: shipper.OnFailureRetreat, Time: at(0),
		}
		return r
	}
	stale := inWave(waved(shipper.AdvanceAutomatic), 1, 0)
	stale.Status.AchievedStep.Wave = 0
	ofOldFigures := inWave(waved(shipper.AdvanceAutomatic), 1, 0)
	ofOldFigures.Status.Progress.Wave = 0
	ahead := strategy.StepState{Converged: true, Achieved: true, Begun: true, Incumbent: true}
	for sentence, tc := range map[string]struct {
		release *shipper.Release
		step    strategy.StepState
		want    *progress.Move
		reason  string
	}{
		"a step follows at once": {
			inWave(waved(shipper.AdvanceAutomatic), 0, 0), ahead, &progress.Move{To: 1, Why: progress.StepDue}, shipper.AdvancingSoaking,
		},
		"a step with a time of its own lasts that long": {
			inWave(waved(shipper.AdvanceAutomatic, "10m"), 0, 0), ahead, nil, shipper.AdvancingSoaking,
		},
		"the next wave begins when one is done": {
			inWave(waved(shipper.AdvanceAutomatic), 0, 2), ahead, &progress.Move{ToWave: 1, Why: progress.StepDue}, shipper.AdvancingSoaking,
		},
		"by hand it does not": {inWave(waved(""), 0, 2), ahead, nil, shipper.AdvancingAwaitingCommand},
		"nothing follows the last": {
			inWave(waved(shipper.AdvanceAutomatic), 1, 2), ahead, nil, shipper.AdvancingComplete,
		},
		"a status of the wave before begins none": {stale, ahead, nil, shipper.AdvancingSoaking},
		"figures of the wave before begin none":   {ofOldFigures, ahead, nil, shipper.AdvancingSoaking},
		"a wave that is not done is not passed": {
			inWave(waved(shipper.AdvanceAutomatic), 0, 2), strategy.StepState{Begun: true}, nil, shipper.AdvancingMoving,
		},
		"a failure goes back to the step without traffic": {
			lost(1, 2), strategy.StepState{Begun: true, Incumbent: true}, &progress.Move{To: 0, ToWave: 1, Why: progress.RolloutFailed},
			shipper.AdvancingFailed,
		},
		"from the first step it goes back to the end of the wave before": {
			lost(1, 0), strategy.StepState{Begun: true, Incumbent: true}, &progress.Move{To: 2, ToWave: 0, Why: progress.RolloutFailed},
			shipper.AdvancingFailed,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := progress.Decide(progress.Observed{Release: tc.release, Step: tc.step, Since: noon.Add(-time.Hour)}, noon.Add(time.Minute))
			if diff := cmp.Diff(tc.want, got.Move); diff != "" {
				t.Errorf("move (-want +got):\n%s", diff)
			}
			if c := shipper.FindCondition(got.Conditions, shipper.ReleaseAdvancing); c == nil || c.Reason != tc.reason {
				t.Errorf("the condition is %+v, want %s", c, tc.reason)
			}
			if p := position.Of(tc.release); got.Progress.Wave != p.Wave || got.Progress.Step != p.Step {
				t.Errorf("the figures are of %+v", got.Progress)
			}
		})
	}
}
