// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// waiting is what the newest Release waits for besides its clusters.
type waiting struct {
	Achieved                              *shipper.AchievedStep
	Approval, Readiness, WaitsForNextWave shipper.StrategyState
}

func (f *fleet) waits() waiting {
	s := f.newest().Status
	return waiting{
		Achieved: s.AchievedStep, Approval: s.Strategy.State.WaitingForApproval, Readiness: s.Strategy.State.WaitingForReadiness,
		WaitsForNextWave: s.Strategy.State.WaitingForCommand,
	}
}

func TestAWaveIsDoneWhenItsAfterTasksHavePassed(t *testing.T) {
	f := newFleet(t, 1)
	rel := f.newest()
	rel.UID = "now"
	rel.Spec.Environment.Strategy.Waves[0].AfterTasks = &shipper.WaveTasks{Approvals: 1, Conditions: []string{"example.com/Verified"}}
	f.goes(0, 1)
	f.settles()
	before := &shipper.AchievedStep{Step: 1, Name: vanguard[1].Name}
	check := func(what string, want waiting) {
		t.Helper()
		f.settles()
		if diff := cmp.Diff(want, f.waits()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	check("a step before the last has no tasks", waiting{Achieved: before, WaitsForNextWave: "True"})
	f.goes(0, 2)
	check("the condition is not there", waiting{Achieved: before, Approval: "False", Readiness: "True", WaitsForNextWave: "False"})
	rel.Status.Conditions = append(rel.Status.Conditions, shipper.Condition{Type: "example.com/Verified", Status: "True"})
	check("no user has approved", waiting{Achieved: before, Approval: "True", Readiness: "False", WaitsForNextWave: "False"})
	f.approvals = []shipper.Approval{{
		ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "now"}}},
		Spec: shipper.ApprovalSpec{
			Release: rel.Name, Step: new(int32(2)), Decision: shipper.DecisionApprove, By: shipper.ApprovalUser{Username: "bob"},
		},
	}}
	done := &shipper.AchievedStep{Step: 2, Name: vanguard[2].Name}
	check("all tasks have passed", waiting{Achieved: done, Approval: "False", Readiness: "False", WaitsForNextWave: "True"})
}

func TestAWaveIsDoneWhenItHasWaited(t *testing.T) {
	converged := time.Unix(1000, 0)
	end, over := metav1.NewTime(converged.Add(time.Hour)), converged.Add(time.Hour)
	const until = "wave canary waits 1h after its clusters have what step 2 asks for, until 1970-01-01T01:16:40Z"
	figures := func(edits ...func(*shipper.ReleaseProgress)) *shipper.ReleaseProgress {
		p := &shipper.ReleaseProgress{Step: 2, Move: 3, ConvergedTime: new(metav1.NewTime(converged))}
		for _, edit := range edits {
			edit(p)
		}
		return p
	}
	type outcome struct {
		Waiting  bool
		Awaited  string
		State    shipper.StrategyState
		Achieved bool
		End      *metav1.Time
	}
	back := func(p *shipper.ReleaseProgress) { p.MovedBack = true }
	unknown := outcome{true, "wave canary waits 1h after its clusters have what step 2 asks for", "True", false, nil}
	for sentence, tc := range map[string]struct {
		at       time.Time
		move     string
		achieved *shipper.AchievedStep
		figures  *shipper.ReleaseProgress
		want     outcome
	}{
		"a second before":           {over.Add(-time.Second), `{"count":3}`, nil, figures(), outcome{true, until, "True", false, &end}},
		"when the time is over":     {over, `{"count":3}`, nil, figures(), outcome{State: "False", Achieved: true, End: &end}},
		"before figures are stored": {over, `{"count":3}`, nil, nil, unknown},
		"by figures of a move before": {
			over, `{"count":3}`, nil, figures(func(p *shipper.ReleaseProgress) { p.Move = 2 }), unknown,
		},
		"by figures of another wave": {
			over, `{"count":3}`, nil, figures(func(p *shipper.ReleaseProgress) { p.Wave = 1 }), unknown,
		},
		"by figures of another step": {
			over, `{"count":3}`, nil, figures(func(p *shipper.ReleaseProgress) { p.Step = 1 }), unknown,
		},
		"before its clusters had everything": {
			over, `{"count":3}`, nil, figures(func(p *shipper.ReleaseProgress) { p.ConvergedTime = nil }), unknown,
		},
		"after a move back from the next wave": {
			converged, `{"from":0,"fromWave":1,"to":2,"count":3}`, &shipper.AchievedStep{Wave: 1}, figures(back),
			outcome{State: "False", Achieved: true},
		},
		"after a move back from a wave that was begun too early": {
			converged, `{"from":0,"fromWave":1,"to":2,"count":3}`, &shipper.AchievedStep{Step: 1}, figures(back),
			outcome{true, until, "True", false, &end},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := newFleet(t, 1)
			rel := f.newest()
			f.goes(0, 2)
			f.settles()
			rel.Spec.Environment.Strategy.Waves[0].AfterTasks = &shipper.WaveTasks{Wait: "1h"}
			rel.Annotations[shipper.ReleaseMovedAnnotation] = tc.move
			rel.Status.AchievedStep, rel.Status.Progress = tc.achieved, tc.figures
			plan := strategy.Make(f.observed(), metav1.NewTime(tc.at))
			got := outcome{
				plan.Step.Waiting, plan.Step.Awaited, plan.Outcomes[len(plan.Outcomes)-1].Status.Strategy.State.WaitingForTime, plan.Step.Achieved,
				strategy.WaitEnd(rel, tc.figures),
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnApprovalOfOneWaveOpensNoOther(t *testing.T) {
	const first, second = `{"from":1,"to":0,"count":1}`, `{"from":0,"to":0,"toWave":1,"count":2}`
	for sentence, tc := range map[string]struct {
		moved string
		wave  int32
		named *int32
		want  []string
	}{
		"at the wave that it was given at":       {first, 0, nil, []string{"bob"}},
		"at the wave that it names":              {first, 0, new(int32), []string{"bob"}},
		"at a wave that it does not name":        {first, 0, new(int32(1)), nil},
		"at the next wave":                       {second, 1, nil, nil},
		"at the next wave, when no webhook asks": {first, 1, nil, nil},
	} {
		rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{
			Name: "web-1", UID: "now", Annotations: map[string]string{shipper.ReleaseMovedAnnotation: tc.moved},
		}}
		tasks := &shipper.WaveTasks{Approvals: 1}
		rel.Spec.TargetWave = &tc.wave
		rel.Spec.Environment.Strategy = &shipper.RolloutStrategy{
			Steps: allIn, Waves: []shipper.Wave{{Name: "a", AfterTasks: tasks}, {Name: "b", AfterTasks: tasks}, {Name: "c"}},
		}
		got, _ := strategy.ApprovalsOf(rel, rel.Spec.Environment.Strategy.StepAt(tc.wave, 0), []shipper.Approval{{
			ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "now"}}},
			Spec:       shipper.ApprovalSpec{Release: "web-1", Step: new(int32), Wave: tc.named, Move: 1, By: shipper.ApprovalUser{Username: "bob"}},
		}})
		if diff := cmp.Diff(tc.want, got.Users); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}
