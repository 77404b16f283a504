// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/apis/rules/progress"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// checked is a strategy whose second step has a check.
func checked(onFailure shipper.FailurePolicy) *shipper.RolloutStrategy {
	s := steps("10m", "10m")
	s.OnFailure, s.Steps[1].Checks = onFailure, []shipper.StepCheck{{Check: "errors"}}
	return s
}

var (
	wrong = []shipper.ReleaseCheck{{Name: "errors", Phase: shipper.CheckHasFailed, Cluster: "eu-2", Measured: 2, Count: 3, Value: "new = 4"}}
	found = &check.Finding{Check: "errors", Cluster: "eu-2", Message: "new = 4, and pass is new < 1", Run: 7}
	runs  = strategy.StepState{Converged: true, Incumbent: true, Available: 1, Awaited: "check errors has 1 of 3 results in eu-2",
		Checks: &check.State{Awaited: "check errors has 1 of 3 results in eu-2"}}
	bad     = strategy.StepState{Converged: true, Incumbent: true, Available: 1, Checks: &check.State{Checks: wrong, Failed: found}}
	unknown = strategy.StepState{Converged: true, Incumbent: true, Available: 1, Checks: &check.State{
		Undecided: &check.Finding{Check: "errors", Cluster: "eu-2", Message: "no value", Run: 7},
	}}
	dry = strategy.StepState{Converged: true, Achieved: true, Incumbent: true, Available: 1, Checks: &check.State{
		Checks: []shipper.ReleaseCheck{{Name: "errors", Phase: shipper.CheckHasFailed, DryRun: true}}, Passed: true,
	}}
)

// failedBy are the figures of a step whose check has failed at noon.
func failedBy(action shipper.FailurePolicy) *shipper.ReleaseProgress {
	p := soaking(1)
	p.Checks = wrong
	p.Failure = &shipper.ReleaseFailure{
		Step: 1, Cluster: "eu-2", Reason: shipper.CheckFailed, Check: "errors", Run: 7, Message: "new = 4, and pass is new < 1", Action: action,
		Time: at(0),
	}
	return p
}

const why = "step 1 (half) failed check errors in eu-2: new = 4, and pass is new < 1"

func TestDecideByChecks(t *testing.T) {
	failed := shipper.Condition{Type: shipper.ReleaseFailed, Status: yes, Reason: shipper.CheckFailed, Message: why}
	acting := func(message string) []shipper.Condition {
		return []shipper.Condition{advancing(no, shipper.AdvancingFailed, message), failed}
	}
	for sentence, tc := range map[string]struct {
		is       progress.Observed
		expected progress.Decision
	}{
		"checks that run are waited for": {
			is: progress.Observed{Release: rel(checked(""), 1, soaking(1)), Step: runs},
			expected: progress.Decision{Progress: soaking(1), Conditions: []shipper.Condition{
				advancing(yes, shipper.AdvancingChecking, "check errors has 1 of 3 results in eu-2"), notFailed,
			}},
		},
		"what is undecided holds, and is no failure": {
			is: progress.Observed{Release: rel(checked(shipper.OnFailureRetreat), 1, soaking(1)), Step: unknown},
			expected: progress.Decision{Progress: soaking(1), Conditions: []shipper.Condition{
				advancing(no, shipper.AdvancingCheckUndecided, "check errors in eu-2: no value"+
					"; shipperctl rollout retry-checks makes the checks again"), notFailed,
			}},
		},
		"a check that failed is a failure": {
			is:       progress.Observed{Release: rel(checked(shipper.OnFailureRetreat), 1, soaking(1)), Step: bad},
			expected: progress.Decision{Progress: failedBy(shipper.OnFailureRetreat), Conditions: acting(why + "; retreats to step 0")},
		},
		"once that is stored, it goes back": {
			is: progress.Observed{Release: rel(checked(shipper.OnFailureRetreat), 1, failedBy(shipper.OnFailureRetreat)), Step: bad},
			expected: progress.Decision{Progress: failedBy(shipper.OnFailureRetreat), Conditions: acting(why + "; retreats to step 0"),
				Move: &progress.Move{To: 0, Why: progress.RolloutFailed}},
		},
		"or is aborted": {
			is:       progress.Observed{Release: rel(checked(shipper.OnFailureAbort), 1, failedBy(shipper.OnFailureAbort)), Step: bad},
			expected: progress.Decision{Progress: failedBy(shipper.OnFailureAbort), Conditions: acting(why + "; is aborted"), Abort: true},
		},
		"or holds": {
			is:       progress.Observed{Release: rel(checked(""), 1, failedBy(shipper.OnFailureHold)), Step: bad},
			expected: progress.Decision{Progress: failedBy(shipper.OnFailureHold), Conditions: acting(why)},
		},
		"a block holds what is done about it": {
			is: progress.Observed{
				Release: rel(checked(shipper.OnFailureRetreat), 1, failedBy(shipper.OnFailureRetreat)), Step: bad,
				BackHeldBy: "rollouts blocked by: a/b",
			},
			expected: progress.Decision{Progress: failedBy(shipper.OnFailureRetreat),
				Conditions: acting(why + "; onFailure is Retreat, and that is held: rollouts blocked by: a/b")},
		},
		"a failure that is held ends when the checks are made again": {
			is: progress.Observed{Release: rel(checked(""), 1, failedBy(shipper.OnFailureHold)), Step: runs},
			expected: progress.Decision{Progress: soaking(1), Conditions: []shipper.Condition{
				advancing(yes, shipper.AdvancingChecking, "check errors has 1 of 3 results in eu-2"), notFailed,
			}},
		},
		"what is dry does not count": {
			is: progress.Observed{Release: achieved(rel(checked(shipper.OnFailureAbort), 1, soaking(1))), Step: dry},
			expected: progress.Decision{
				Progress: next(with(soaking(1), func(p *shipper.ReleaseProgress) { p.Checks = dry.Checks.Checks }), 2, 10*time.Minute),
				Conditions: []shipper.Condition{
					advancing(yes, shipper.AdvancingSoaking, "advances to step 2 (full on) 10m after step 1 got its capacity and traffic"), notFailed,
				},
				CommandNotAwaited: true, Again: 10 * time.Minute,
			},
		},
		"at a step that was gone back to nothing fails": {
			is: progress.Observed{
				Release: rel(checked(shipper.OnFailureAbort), 1, with(soaking(1), func(p *shipper.ReleaseProgress) { p.MovedBack = true })), Step: bad,
			},
			expected: progress.Decision{
				Progress: with(soaking(1), func(p *shipper.ReleaseProgress) { p.MovedBack, p.Checks = true, wrong }),
				Conditions: []shipper.Condition{
					advancing(no, shipper.AdvancingHeldAfterGoingBack, "it retreated to step 1: nothing advances until a user raises targetStep"),
					notFailed,
				},
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.expected, progress.Decide(tc.is, noon)); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}
