// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/progress"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// noon is when each case begins; deadline is that of a step requested then.
var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(d)) }

// steps of a canary: no traffic, half of it, all.
func steps(after ...shipper.Duration) *shipper.RolloutStrategy {
	s := &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{
		{Name: "staging"}, {Name: "half"}, {Name: "full on"},
	}}
	s.Steps[0].Traffic.Incumbent = 100
	s.Steps[1].Traffic.Contender, s.Steps[1].Traffic.Incumbent = 50, 50
	s.Steps[2].Traffic.Contender = 100
	for i, d := range after {
		s.Steps[i].After = d
	}
	return s
}

func failing(onFailure shipper.FailurePolicy) *shipper.RolloutStrategy {
	s := steps("10m", "10m")
	s.ProgressDeadline, s.OnFailure = "5m", onFailure
	return s
}

// rel is a Release at a step, with figures of it.
func rel(s *shipper.RolloutStrategy, step int32, p *shipper.ReleaseProgress) *shipper.Release {
	out := &shipper.Release{Spec: shipper.ReleaseSpec{TargetStep: step, Environment: shipper.ReleaseEnvironment{Strategy: s}}}
	out.Generation, out.Status.ObservedGeneration = 1, 1
	out.Status.Progress = p
	return out
}

func achieved(r *shipper.Release) *shipper.Release {
	r.Status.AchievedStep = &shipper.AchievedStep{Step: r.Spec.TargetStep}
	r.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseStrategyExecuted, Status: yes}}
	return r
}

// lacks has a stored status from a time when the step, achieved before, lacked something again.
func lacks(r *shipper.Release) *shipper.Release {
	r.Status.Conditions[0].Status = no
	return r
}

func held(r *shipper.Release) *shipper.Release {
	r.Spec.Hold = "lunch"
	return r
}

func moved(r *shipper.Release, note string) *shipper.Release {
	r.Annotations = map[string]string{shipper.ReleaseMovedAnnotation: note}
	return r
}

// soaking are the figures of a step that converged at noon.
func soaking(step int32) *shipper.ReleaseProgress {
	return &shipper.ReleaseProgress{Step: step, RequestedTime: at(-time.Minute), ConvergedTime: new(at(0))}
}

// awaited are the figures of a step with a deadline that was requested at noon.
func awaited(step int32) *shipper.ReleaseProgress {
	return &shipper.ReleaseProgress{Step: step, RequestedTime: at(0), DeadlineTime: new(at(5 * time.Minute)), AvailablePods: 1}
}

// failure is what became of a step whose deadline has run out.
func failure(step int32, action shipper.FailurePolicy) *shipper.ReleaseProgress {
	return &shipper.ReleaseProgress{Step: step, RequestedTime: at(0), AvailablePods: 1, Failure: &shipper.ReleaseFailure{
		Step: step, Cluster: "eu-2", Reason: shipper.ProgressDeadlineExceeded, Message: "1 Pod crashes", Action: action,
		Time: at(5 * time.Minute),
	}}
}

var (
	done    = strategy.StepState{Converged: true, Achieved: true, Incumbent: true, Available: 1}
	lacking = strategy.StepState{Incumbent: true, Awaited: "capacity is awaited", Available: 1, Lacking: []strategy.Lack{
		{Cluster: "eu-1"}, {Cluster: "eu-2", Reachable: true, Message: "1 Pod crashes"},
	}}
	lost = strategy.StepState{Incumbent: true, Awaited: "capacity is awaited", Available: 1, Lacking: []strategy.Lack{{Cluster: "eu-1"}}}
	more = strategy.StepState{Incumbent: true, Awaited: "capacity is awaited", Available: 2, Lacking: lacking.Lacking}
	// behind is a wave that has to wait for a cluster of a wave before it.
	behind = strategy.StepState{
		Incumbent: true, Awaited: "capacity is awaited", Available: 1, Lacking: lacking.Lacking, DoneWaveUnhealthy: true,
	}
	only = strategy.StepState{Awaited: "capacity is awaited", Available: 1, Lacking: lacking.Lacking}
)

func advancing(status corev1.ConditionStatus, reason, message string) shipper.Condition {
	return shipper.Condition{Type: shipper.ReleaseAdvancing, Status: status, Reason: reason, Message: message}
}

const (
	yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	goesOn  = "advances to step 1 (half) 10m after step 0 got its capacity and traffic"
	said    = "step 1 (half) was not ready within 5m in eu-2: 1 Pod crashes"
)

var isFailed = shipper.Condition{
	Type: shipper.ReleaseFailed, Status: yes, Reason: shipper.ProgressDeadlineExceeded, Message: said,
}

var notFailed = shipper.Condition{Type: shipper.ReleaseFailed, Status: no}

func with(p *shipper.ReleaseProgress, edit func(*shipper.ReleaseProgress)) *shipper.ReleaseProgress {
	edit(p)
	return p
}

func next(p *shipper.ReleaseProgress, step int32, after time.Duration) *shipper.ReleaseProgress {
	p.Next = &shipper.ReleaseNextStep{Step: step, Time: at(after)}
	return p
}

func TestDecide(t *testing.T) {
	for sentence, tc := range map[string]struct {
		is       progress.Observed
		after    time.Duration
		expected progress.Decision
	}{
		"a strategy of today does nothing by itself": {
			is: progress.Observed{Release: achieved(rel(steps(), 0, nil)), Step: done},
		},
		"a step that is requested moves": {
			is: progress.Observed{Release: rel(steps("10m"), 0, nil), Step: lacking}, after: 300 * time.Millisecond,
			expected: progress.Decision{
				Progress:   &shipper.ReleaseProgress{RequestedTime: at(time.Second)},
				Conditions: []shipper.Condition{advancing(yes, shipper.AdvancingMoving, "capacity is awaited")},
			},
		},
		"a step that has what it wants waits for readinessGates": {
			is: progress.Observed{Release: rel(steps("10m"), 0, nil), Step: strategy.StepState{Converged: true, Awaited: "example.com/A"}},
			expected: progress.Decision{
				Progress:   &shipper.ReleaseProgress{RequestedTime: at(0), ConvergedTime: new(at(0))},
				Conditions: []shipper.Condition{advancing(yes, shipper.AdvancingChecking, "example.com/A")},
			},
		},
		"an achieved step soaks until it is due": {
			is: progress.Observed{Release: achieved(rel(steps("10m"), 0, soaking(0))), Step: done}, after: 4 * time.Minute,
			expected: progress.Decision{
				Progress: next(soaking(0), 1, 10*time.Minute), CommandNotAwaited: true, Again: 6 * time.Minute,
				Conditions: []shipper.Condition{advancing(yes, shipper.AdvancingSoaking, goesOn)},
			},
		},
		"a step that is due goes on": {
			is: progress.Observed{Release: achieved(rel(steps("10m"), 0, soaking(0))), Step: done}, after: 10 * time.Minute,
			expected: progress.Decision{
				Progress: next(soaking(0), 1, 10*time.Minute), CommandNotAwaited: true, Move: &progress.Move{To: 1, Why: progress.StepDue},
				Conditions: []shipper.Condition{advancing(yes, shipper.AdvancingSoaking, goesOn)},
			},
		},
		"one that is due does not go on before it is stored that it was achieved": {
			is: progress.Observed{Release: rel(steps("10m"), 0, soaking(0)), Step: done}, after: 10 * time.Minute,
			expected: progress.Decision{
				Progress: next(soaking(0), 1, 10*time.Minute), CommandNotAwaited: true,
				Conditions: []shipper.Condition{advancing(yes, shipper.AdvancingSoaking, goesOn)},
			},
		},
		"nor while the stored status says that it lacks something again": {
			is: progress.Observed{Release: lacks(achieved(rel(steps("10m"), 0, soaking(0)))), Step: done}, after: 10 * time.Minute,
			expected: progress.Decision{
				Progress: next(soaking(0), 1, 10*time.Minute), CommandNotAwaited: true,
				Conditions: []shipper.Condition{advancing(yes, shipper.AdvancingSoaking, goesOn)},
			},
		},
		"nor while Pods of it have gone since": {
			is: progress.Observed{Release: achieved(rel(steps("10m"), 0, soaking(0))), Step: lacking}, after: 10 * time.Minute,
			expected: progress.Decision{
				Progress:   soaking(0),
				Conditions: []shipper.Condition{advancing(yes, shipper.AdvancingMoving, "capacity is awaited")},
			},
		},
		"one without after awaits a command": {
			is: progress.Observed{Release: achieved(rel(steps("", "10m"), 0, soaking(0))), Step: done},
			expected: progress.Decision{
				Progress:   soaking(0),
				Conditions: []shipper.Condition{advancing(no, shipper.AdvancingAwaitingCommand, "waits until targetStep is raised to 1")},
			},
		},
		"one that is held stays": {
			is: progress.Observed{Release: held(achieved(rel(steps("10m"), 0, soaking(0)))), Step: done}, after: time.Hour,
			expected: progress.Decision{
				Progress:   next(soaking(0), 1, 10*time.Minute),
				Conditions: []shipper.Condition{advancing(no, shipper.AdvancingHeldByUser, "held: lunch")},
			},
		},
		"one under a block stays": {
			is: progress.Observed{Release: achieved(rel(steps("10m"), 0, soaking(0))), Step: done, UpHeldBy: "blocked"}, after: time.Hour,
			expected: progress.Decision{
				Progress: next(soaking(0), 1, 10*time.Minute), CommandNotAwaited: true,
				Conditions: []shipper.Condition{advancing(no, shipper.AdvancingHeldByBlock, "blocked")},
			},
		},
		"the last is complete": {
			is: progress.Observed{Release: achieved(rel(steps("10m"), 2, soaking(2))), Step: done}, after: time.Hour,
			expected: progress.Decision{
				Progress: soaking(2), Conditions: []shipper.Condition{advancing(no, shipper.AdvancingComplete, "")},
			},
		},
		"a step that was lowered goes back": {
			is: progress.Observed{Release: moved(rel(steps("10m"), 0, soaking(1)), `{"from":1,"to":0,"count":2}`), Step: lacking},
			expected: progress.Decision{
				Progress:   &shipper.ReleaseProgress{Move: 2, MovedBack: true, RequestedTime: at(0)},
				Conditions: []shipper.Condition{advancing(no, shipper.AdvancingGoingBack, "capacity is awaited")},
			},
		},
		"and stays there": {
			is: progress.Observed{
				Release: achieved(moved(rel(steps("10m"), 0, with(soaking(0), func(p *shipper.ReleaseProgress) { p.Move, p.MovedBack = 2, true })),
					`{"from":1,"to":0,"count":2}`)), Step: done,
			},
			after: time.Hour,
			expected: progress.Decision{
				Progress: with(soaking(0), func(p *shipper.ReleaseProgress) { p.Move, p.MovedBack = 2, true }),
				Conditions: []shipper.Condition{advancing(no, shipper.AdvancingHeldAfterGoingBack,
					"it retreated to step 0: nothing advances until a user raises targetStep")},
			},
		},
		"and it says what the step lacks, or a user who raises it is refused without a reason": {
			is: progress.Observed{Release: achieved(rel(steps("10m"), 0, soaking(1))), Step: strategy.StepState{
				Converged: true, Awaited: "step 0 has 0 of 2 approvals",
			}},
			expected: progress.Decision{
				Progress: &shipper.ReleaseProgress{MovedBack: true, RequestedTime: at(0), ConvergedTime: new(at(0))},
				Conditions: []shipper.Condition{advancing(no, shipper.AdvancingHeldAfterGoingBack,
					"it retreated to step 0: nothing advances until a user raises targetStep; step 0 has 0 of 2 approvals")},
			},
		},
		"also without a note that it was lowered": {
			is: progress.Observed{Release: achieved(rel(steps("10m"), 0, soaking(1))), Step: done},
			expected: progress.Decision{
				Progress: &shipper.ReleaseProgress{MovedBack: true, RequestedTime: at(0), ConvergedTime: new(at(0))},
				Conditions: []shipper.Condition{advancing(no, shipper.AdvancingHeldAfterGoingBack,
					"it retreated to step 0: nothing advances until a user raises targetStep")},
			},
		},
		"it goes on once it was raised": {
			is: progress.Observed{
				Release: moved(rel(steps("10m", "10m"), 1, with(soaking(0), func(p *shipper.ReleaseProgress) { p.Move, p.MovedBack = 2, true })),
					`{"from":0,"to":1,"count":3}`), Step: done,
			},
			expected: progress.Decision{
				Progress: next(&shipper.ReleaseProgress{Step: 1, Move: 3, RequestedTime: at(0), ConvergedTime: new(at(0))}, 2, 10*time.Minute),
				Conditions: []shipper.Condition{advancing(yes, shipper.AdvancingSoaking,
					"advances to step 2 (full on) 10m after step 1 got its capacity and traffic")},
				CommandNotAwaited: true, Again: 10 * time.Minute,
			},
		},
		"a deadline begins when the step is requested": {
			is: progress.Observed{Release: rel(failing(""), 1, nil), Step: lacking},
			expected: progress.Decision{
				Progress:   awaited(1),
				Conditions: []shipper.Condition{advancing(yes, shipper.AdvancingMoving, "capacity is awaited"), notFailed}, Again: 5 * time.Minute,
			},
		},
		"it begins again when more Pods are available": {
			is: progress.Observed{Release: rel(failing(""), 1, awaited(1)), Step: more}, after: 4 * time.Minute,
			expected: progress.Decision{
				Progress: with(awaited(1), func(p *shipper.ReleaseProgress) {
					p.AvailablePods, p.DeadlineTime = 2, new(at(9*time.Minute))
				}),
				Conditions: []shipper.Condition{advancing(yes, shipper.AdvancingMoving, "capacity is awaited"), notFailed}, Again: 5 * time.Minute,
			},
		},
		"it stands while only a lost cluster is awaited": {
			is: progress.Observed{Release: rel(failing(""), 1, awaited(1)), Step: lost}, after: 4 * time.Minute,
			expected: progress.Decision{
				Progress: with(awaited(1), func(p *shipper.ReleaseProgress) { p.DeadlineTime, p.DeadlineRemaining = nil, "1m0s" }),
				Conditions: []shipper.Condition{
					advancing(no, shipper.ClustersNotOperational, "capacity is awaited"), notFailed,
				},
			},
		},
		"and while no cluster begins because of the waves before": {
			is: progress.Observed{Release: rel(failing(""), 1, awaited(1)), Step: behind}, after: 4 * time.Minute,
			expected: progress.Decision{
				Progress: with(awaited(1), func(p *shipper.ReleaseProgress) { p.DeadlineTime, p.DeadlineRemaining = nil, "1m0s" }),
				Conditions: []shipper.Condition{
					advancing(no, shipper.AdvancingDoneWaveUnhealthy, "capacity is awaited"), notFailed,
				},
			},
		},
		"and under a block": {
			is: progress.Observed{Release: rel(failing(""), 1, awaited(1)), Step: lacking, WritesHeldBy: "blocked"}, after: 4 * time.Minute,
			expected: progress.Decision{
				Progress:   with(awaited(1), func(p *shipper.ReleaseProgress) { p.DeadlineTime, p.DeadlineRemaining = nil, "1m0s" }),
				Conditions: []shipper.Condition{advancing(no, shipper.AdvancingHeldByBlock, "blocked"), notFailed},
			},
		},
		"and goes on with what was left": {
			is: progress.Observed{
				Release: rel(failing(""), 1, with(awaited(1), func(p *shipper.ReleaseProgress) { p.DeadlineTime, p.DeadlineRemaining = nil, "1m0s" })),
				Step:    lacking,
			},
			after: time.Hour,
			expected: progress.Decision{
				Progress:   with(awaited(1), func(p *shipper.ReleaseProgress) { p.DeadlineTime = new(at(61 * time.Minute)) }),
				Conditions: []shipper.Condition{advancing(yes, shipper.AdvancingMoving, "capacity is awaited"), notFailed}, Again: time.Minute,
			},
		},
		"one that ran out while no reconciler ran counts half a minute later": {
			is:    progress.Observed{Release: rel(failing(""), 1, awaited(1)), Step: lacking, Since: noon.Add(time.Hour)},
			after: time.Hour,
			expected: progress.Decision{
				Progress:   awaited(1),
				Conditions: []shipper.Condition{advancing(yes, shipper.AdvancingMoving, "capacity is awaited"), notFailed}, Again: 30 * time.Second,
			},
		},
		"one that ran out is a failure": {
			is: progress.Observed{Release: rel(failing(""), 1, awaited(1)), Step: lacking}, after: 5 * time.Minute,
			expected: progress.Decision{
				Progress:   failure(1, shipper.OnFailureHold),
				Conditions: []shipper.Condition{advancing(no, shipper.AdvancingFailed, said), isFailed},
			},
		},
		"nothing is done about a failure before it is stored": {
			is: progress.Observed{Release: rel(failing(shipper.OnFailureRetreat), 1, awaited(1)), Step: lacking}, after: 5 * time.Minute,
			expected: progress.Decision{
				Progress:   failure(1, shipper.OnFailureRetreat),
				Conditions: []shipper.Condition{advancing(no, shipper.AdvancingFailed, said+"; retreats to step 0"), isFailed},
			},
		},
		"then it goes back": {
			is: progress.Observed{Release: rel(failing(shipper.OnFailureRetreat), 1, failure(1, shipper.OnFailureRetreat)), Step: lacking},
			expected: progress.Decision{
				Progress:   failure(1, shipper.OnFailureRetreat),
				Conditions: []shipper.Condition{advancing(no, shipper.AdvancingFailed, said+"; retreats to step 0"), isFailed},
				Move:       &progress.Move{To: 0, Why: progress.RolloutFailed},
			},
		},
		"and has failed until it is raised": {
			is: progress.Observed{
				Release: achieved(moved(rel(failing(shipper.OnFailureRetreat), 0, failure(1, shipper.OnFailureRetreat)),
					`{"from":1,"to":0,"count":1,"why":"RolloutFailed"}`)), Step: done,
			},
			expected: progress.Decision{
				Progress: &shipper.ReleaseProgress{
					Move: 1, MovedBack: true, RequestedTime: at(0), ConvergedTime: new(at(0)),
					Failure: failure(1, shipper.OnFailureRetreat).Failure,
				},
				Conditions: []shipper.Condition{advancing(no, shipper.AdvancingHeldAfterGoingBack,
					"it failed and went back to step 0: a user gives it up by an abort, or raises targetStep to try it again"), isFailed},
			},
		},
		"it is aborted where that is asked for": {
			is: progress.Observed{Release: rel(failing(shipper.OnFailureAbort), 1, failure(1, shipper.OnFailureAbort)), Step: lacking},
			expected: progress.Decision{
				Progress:   failure(1, shipper.OnFailureAbort),
				Conditions: []shipper.Condition{advancing(no, shipper.AdvancingFailed, said+"; is aborted"), isFailed}, Abort: true,
			},
		},
		"a block holds what is done about a failure": {
			is: progress.Observed{
				Release: rel(failing(shipper.OnFailureAbort), 1, failure(1, shipper.OnFailureAbort)), Step: lacking, AbortHeldBy: "blocked",
			},
			expected: progress.Decision{
				Progress: failure(1, shipper.OnFailureAbort),
				Conditions: []shipper.Condition{
					advancing(no, shipper.AdvancingFailed, said+"; onFailure is Abort, and that is held: blocked"), isFailed,
				},
			},
		},
		"so does a user": {
			is: progress.Observed{
				Release: held(rel(failing(shipper.OnFailureRetreat), 1, failure(1, shipper.OnFailureRetreat))), Step: lacking,
			},
			expected: progress.Decision{
				Progress: failure(1, shipper.OnFailureRetreat),
				Conditions: []shipper.Condition{
					advancing(no, shipper.AdvancingFailed, said+"; onFailure is Retreat, and that is held: lunch"), isFailed,
				},
			},
		},
		"where there is nothing to go back to, a failure holds": {
			is: progress.Observed{Release: rel(failing(shipper.OnFailureAbort), 1, awaited(1)), Step: only}, after: 5 * time.Minute,
			expected: progress.Decision{
				Progress: failure(1, shipper.OnFailureHold),
				Conditions: []shipper.Condition{
					advancing(no, shipper.AdvancingFailed, said+"; onFailure is Abort, but there is nothing to go back to"),
					{
						Type: shipper.ReleaseFailed, Status: yes, Reason: shipper.ProgressDeadlineExceeded,
						Message: said + "; onFailure is Abort, but there is nothing to go back to",
					},
				},
			},
		},
		"a step that gets what it wants late has not failed": {
			is: progress.Observed{Release: achieved(rel(failing(""), 1, failure(1, shipper.OnFailureHold))), Step: done}, after: 5 * time.Minute,
			expected: progress.Decision{
				Progress: next(&shipper.ReleaseProgress{
					Step: 1, RequestedTime: at(0), ConvergedTime: new(at(5 * time.Minute)), AvailablePods: 1,
				}, 2, 15*time.Minute),
				Conditions: []shipper.Condition{advancing(yes, shipper.AdvancingSoaking,
					"advances to step 2 (full on) 10m after step 1 got its capacity and traffic"), notFailed},
				CommandNotAwaited: true, Again: 10 * time.Minute,
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			before := tc.is.Release.DeepCopy()
			got := progress.Decide(tc.is, noon.Add(tc.after))
			if diff := cmp.Diff(tc.expected, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.is.Release); diff != "" {
				t.Errorf("the Release was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestResourcesFailByTheirDeadlineToo(t *testing.T) {
	rel := &shipper.Release{}
	rel.Spec.Environment.Resources = &shipper.Resources{}
	rel.Spec.Environment.Strategy = &shipper.RolloutStrategy{ProgressDeadline: "1m", OnFailure: shipper.OnFailureAbort}
	begun := time.Unix(1000, 0)
	o := progress.Observed{Release: rel, Since: begun, Step: strategy.StepState{
		Awaited: "clusters pending: [a]", Incumbent: true,
		Lacking: []strategy.Lack{{Cluster: "a", Reachable: true, Message: "web has 0 of 1 Pods"}},
	}}
	rel.Status.Progress = progress.Decide(o, begun).Progress
	if late := progress.Decide(o, begun.Add(61*time.Second)); late.Progress.Failure == nil {
		t.Fatalf("it has not failed: %+v", late.Progress)
	} else if rel.Status.Progress = late.Progress; !progress.Decide(o, begun.Add(62*time.Second)).Abort {
		t.Error("it is not aborted")
	}
}
