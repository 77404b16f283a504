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
	r.Spec.TargetWave = &wave
	achieved(r)
	r.Status.AchievedStep.Wave = wave
	return r
}

// placedIn is a Release with resources, in a wave that is done.
func placedIn(advance shipper.AdvancePolicy, wave int32) *shipper.Release {
	s := waved(advance)
	s.Steps, s.ProgressDeadline, s.OnFailure = nil, "5m", shipper.OnFailureRetreat
	r := inWave(s, wave, 0)
	r.Spec.Environment.Resources = &shipper.Resources{}
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
	lostPlaced := func(wave int32) *shipper.Release {
		r := placedIn("", wave)
		r.Status.Progress = lost(wave, 0).Status.Progress
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
		"of resources the next wave begins when one is done": {
			placedIn("", 0), ahead, &progress.Move{ToWave: 1, Why: progress.StepDue}, shipper.AdvancingSoaking,
		},
		"of resources by hand it does not":      {placedIn(shipper.AdvanceManual, 0), ahead, nil, shipper.AdvancingAwaitingCommand},
		"of resources nothing follows the last": {placedIn("", 1), ahead, nil, shipper.AdvancingComplete},
		"a failure of resources goes back to the wave before": {
			lostPlaced(1), strategy.StepState{Begun: true, Incumbent: true}, &progress.Move{Why: progress.RolloutFailed},
			shipper.AdvancingFailed,
		},
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

func TestBlockedClustersFailNoRelease(t *testing.T) {
	s := waved(shipper.AdvanceAutomatic)
	s.ProgressDeadline, s.OnFailure = "5m", shipper.OnFailureRetreat
	blocked := strategy.Lack{Cluster: "eu-1", Reachable: true, Blocked: true}
	lost, slow := strategy.Lack{Cluster: "lost"}, strategy.Lack{Cluster: "slow", Reachable: true, Message: "1/4"}
	for sentence, tc := range map[string]struct {
		lacking []strategy.Lack
		reason  string
		// remaining is what is left of the time that stands still; failed is the cluster that fails.
		remaining shipper.Duration
		failed    string
	}{
		"the clock stands while only blocked ones are missing": {[]strategy.Lack{blocked}, shipper.AdvancingHeldByBlock, "0s", ""},
		"and beside one that is lost":                          {[]strategy.Lack{blocked, lost}, shipper.AdvancingHeldByBlock, "0s", ""},
		"one that may move fails, and it alone":                {[]strategy.Lack{blocked, slow}, shipper.AdvancingFailed, "", "slow"},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := inWave(s, 1, 0)
			r.Status.Progress.ConvergedTime, r.Status.Progress.DeadlineTime = nil, new(at(-time.Minute))
			step := strategy.StepState{Begun: true, Incumbent: true, Lacking: tc.lacking, Awaited: "eu-1 is blocked"}
			d := progress.Decide(progress.Observed{Release: r, Step: step, Since: at(-time.Hour).Time}, at(0).Time)
			failed := ""
			if f := d.Progress.Failure; f != nil {
				failed = f.Cluster
			}
			got := []string{d.Conditions[0].Reason, d.Progress.DeadlineRemaining, failed}
			if diff := cmp.Diff([]string{tc.reason, string(tc.remaining), tc.failed}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
