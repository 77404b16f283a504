// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// holdBefore makes the newest Release of a fleet wait before one of its waves.
func (f *fleet) holdBefore(wave int32, tasks *shipper.WaveTasks) *shipper.Release {
	rel := f.newest()
	rel.UID = "now"
	rel.Spec.Environment.Strategy.Waves[wave].BeforeTasks = tasks
	return rel
}

// moves moves the newest Release as the webhook notes it, with new figures.
func (f *fleet) moves(wave, step int32) {
	rel := f.newest()
	was := rel.DeepCopy()
	f.goes(wave, step)
	rel.Annotations[shipper.ReleaseMovedAnnotation] = stamp.Move(was, rel, "dev", "", metav1.NewTime(f.now))
	rel.Status.Progress = f.figures()
}

// figures are those of the newest Release's position since its last move.
func (f *fleet) figures() *shipper.ReleaseProgress {
	at := position.Of(f.newest())
	return &shipper.ReleaseProgress{
		Step: at.Step, Wave: at.Wave, Move: stamp.Moved(f.newest()).Count, MovedBack: stamp.WentBack(f.newest()),
		RequestedTime: metav1.NewTime(f.now),
	}
}

// enters records what the reconciler does once beforeTasks have passed.
func (f *fleet) enters() {
	f.t.Helper()
	if !f.plan.Step.Entered {
		f.t.Fatalf("its beforeTasks have not passed: %+v", f.plan.Step)
	}
	f.newest().Status.Progress.EnteredTime = new(metav1.NewTime(f.now))
}

// awaits requires that the position waits for one thing.
func (f *fleet) awaits(want string) {
	f.t.Helper()
	if is := f.plan.Step.Awaited; is != want {
		f.t.Errorf("it says %q, not %q", is, want)
	}
}

// approval is an Approval of the position of a Release.
func (f *fleet) approval(user string, edits ...func(*shipper.ApprovalSpec)) shipper.Approval {
	at := position.Of(f.newest())
	out := shipper.Approval{
		ObjectMeta: metav1.ObjectMeta{Name: user, OwnerReferences: []metav1.OwnerReference{{UID: "now"}}},
		Spec: shipper.ApprovalSpec{
			Release: f.newest().Name, Step: new(at.Step), Wave: new(at.Wave), Task: shipper.ApprovalBefore, Move: stamp.Moved(f.newest()).Count,
			By: shipper.ApprovalUser{Username: user},
		},
	}
	for _, edit := range edits {
		edit(&out.Spec)
	}
	return out
}

func TestBeforeTasksOfTheFirstWaveHoldTheStart(t *testing.T) {
	f := newFleet(t, 1)
	f.holdBefore(0, &shipper.WaveTasks{Approvals: 1})
	f.newest().Status.Progress = f.figures()
	f.untouched = []string{"a", "b", "c", "d"}
	f.settles()
	s := f.plan.Step
	if s.Achieved || s.Converged || !s.Beginning || !s.Approving || s.Entered || len(s.Lacking) > 0 {
		t.Errorf("it does not wait for approvals: %+v", s)
	}
	f.awaits("the beginning of wave canary has 0 of 1 approvals")
	if state := f.newest().Status.Strategy.State; state.WaitingForApproval != "True" || state.WaitingForInstallation != "False" {
		t.Errorf("the state is %+v", state)
	}
	f.approvals = []shipper.Approval{f.approval("bob")}
	f.untouched = []string{"b", "c", "d"}
	f.settles()
	f.isAt(position.Position{})
	f.wants("the first step", map[string]int32{"a": 1})
}

func TestBeforeTasksOfALaterWaveHoldItsClustersAlone(t *testing.T) {
	f := newFleet(t, 3)
	f.holdBefore(1, &shipper.WaveTasks{Conditions: []string{"example.com/Ready"}, Approvals: 2})
	f.moves(0, 2)
	f.settles()
	f.isAt(position.Position{Step: 2})
	f.moves(1, 0)
	f.untouched = []string{"b", "c", "d"}
	f.runs[f.newest().Name]["a"].pods = 3 // of a wave that is done: repaired meanwhile
	f.settles()
	f.wants("the first wave", map[string]int32{"a": 4})
	f.isAt(position.Position{Step: 2})
	f.awaits(`wave production begins when release "web-1" has conditions that others set in its status: example.com/Ready is not there yet`)
	rel := f.newest()
	rel.Status.Conditions = append(rel.Status.Conditions, shipper.Condition{Type: "example.com/Ready", Status: "True"})
	f.approvals = []shipper.Approval{f.approval("bob")}
	f.settles()
	f.awaits("the beginning of wave production has 1 of 2 approvals: bob")
	f.approvals = append(f.approvals, f.approval("eve"))
	f.untouched = nil
	f.settles()
	f.wants("the second wave", map[string]int32{"a": 4, "b": 1, "c": 1, "d": 1})
	f.isAt(position.Position{Wave: 1})
}

// TestOnlyApprovalsOfItsBeginningOpenAWave gives approvals of everything else: a cluster of the wave would change.
func TestOnlyApprovalsOfItsBeginningOpenAWave(t *testing.T) {
	for sentence, edit := range map[string]func(f *fleet, a *shipper.Approval){
		"of the step":              func(_ *fleet, a *shipper.Approval) { a.Spec.Task = "" },
		"of another task":          func(_ *fleet, a *shipper.Approval) { a.Spec.Task = "After" },
		"of the wave before":       func(_ *fleet, a *shipper.Approval) { a.Spec.Wave = new(int32) },
		"from before the move":     func(_ *fleet, a *shipper.Approval) { a.Spec.Move-- },
		"of another step":          func(_ *fleet, a *shipper.Approval) { a.Spec.Step = new(int32(1)) },
		"of an earlier Release":    func(_ *fleet, a *shipper.Approval) { a.OwnerReferences[0].UID = "then" },
		"by who asked":             func(_ *fleet, a *shipper.Approval) { a.Spec.By.Username = "cay" },
		"by nobody":                func(_ *fleet, a *shipper.Approval) { a.Spec.By.Username = "" },
		"by a ServiceAccount here": func(_ *fleet, a *shipper.Approval) { a.Spec.By.Username = "system:serviceaccount:default:ci" },
		"that is deleted":          func(_ *fleet, a *shipper.Approval) { a.DeletionTimestamp = new(metav1.Unix(0, 0)) },
		"that refuses":             func(_ *fleet, a *shipper.Approval) { a.Spec.Decision = shipper.DecisionReject },
		"beside a refusal": func(f *fleet, _ *shipper.Approval) {
			f.approvals = append(f.approvals, f.approval("eve", func(a *shipper.ApprovalSpec) { a.Decision = shipper.DecisionReject }))
		},
		"of a move that no webhook noted": func(f *fleet, _ *shipper.Approval) {
			f.newest().Annotations[shipper.ReleaseMovedAnnotation] = fmt.Sprintf(`{"from":1,"to":2,"count":%d}`, stamp.Moved(f.newest()).Count)
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := newFleet(t, 3)
			rel := f.holdBefore(1, &shipper.WaveTasks{Approvals: 1})
			rel.Annotations[shipper.ReleaseRequestedByAnnotation] = "cay"
			rel.Namespace = "default"
			f.moves(0, 2)
			f.settles()
			f.moves(1, 0)
			f.untouched = []string{"b", "c", "d"}
			a := f.approval("bob")
			edit(f, &a)
			f.approvals = append(f.approvals, a)
			f.settles()
			f.isAt(position.Position{Step: 2})
		})
	}
}

// TestAnApprovalOfTheBeginningOpensNothingElse has one step, so that the wave begins and ends at it.
func TestAnApprovalOfTheBeginningOpensNothingElse(t *testing.T) {
	f := newFleet(t, 1)
	rel := f.holdBefore(0, &shipper.WaveTasks{Approvals: 1})
	rel.Spec.Environment.Strategy.Steps = allIn
	rel.Spec.Environment.Strategy.Waves[0].AfterTasks = &shipper.WaveTasks{Approvals: 1}
	rel.Status.Progress = f.figures()
	f.approvals = []shipper.Approval{f.approval("bob")}
	f.settles()
	f.wants("the wave", map[string]int32{"a": 4})
	if s := f.plan.Step; s.Achieved || !s.Converged || s.Beginning || s.Awaited != "step 0 of wave canary has 0 of 1 approvals" {
		t.Errorf("the wave is not awaited: %+v", s)
	}
	f.approvals = append(f.approvals, f.approval("eve", func(a *shipper.ApprovalSpec) { a.Task = "" }))
	f.settles()
	f.isAt(position.Position{})
}

func TestAWaveBeginsWhenItHasWaited(t *testing.T) {
	f := newFleet(t, 1)
	rel := f.holdBefore(0, &shipper.WaveTasks{Wait: "1h"})
	begins, until := time.Unix(1000, 0), "wave canary waits 1h before it begins, until 1970-01-01T01:16:40Z"
	f.untouched = []string{"a", "b", "c", "d"}
	f.settles()
	if s := f.plan.Step; !s.Waiting || s.Awaited != "wave canary waits 1h before it begins" {
		t.Errorf("without figures: %+v", s)
	}
	rel.Status.Progress = f.figures()
	rel.Status.Progress.RequestedTime = metav1.NewTime(begins)
	f.settles()
	if s := f.plan.Step; !s.Waiting || s.Awaited != until {
		t.Errorf("before the time is over: %+v", s)
	}
	f.now, f.untouched = begins.Add(time.Hour), nil
	f.settles()
	f.isAt(position.Position{})
}

// TestAWaveThatHasBegunGoesOn lets conditions and approvals change once the tasks have passed.
func TestAWaveThatHasBegunGoesOn(t *testing.T) {
	f := newFleet(t, 1)
	rel := f.holdBefore(1, &shipper.WaveTasks{Conditions: []string{"example.com/Ready"}, Approvals: 1})
	f.moves(0, 2)
	f.settles()
	f.moves(1, 0)
	rel.Status.Conditions = append(rel.Status.Conditions, shipper.Condition{Type: "example.com/Ready", Status: "True"})
	f.approvals = []shipper.Approval{f.approval("bob")}
	f.tick()
	f.enters()
	f.tick()
	given := f.approvals
	f.approvals = nil // withdrawn: b goes on, and c and d do not begin
	f.untouched = []string{"c", "d"}
	f.settles()
	f.wants("a withdrawn approval", map[string]int32{"a": 4, "b": 1})
	if s := f.plan.Step; s.Achieved || s.Converged || s.Awaited != "the beginning of wave production has 0 of 1 approvals" {
		t.Errorf("the approval is not awaited: %+v", s)
	}
	f.approvals, f.untouched = given, nil
	rel.Status.Conditions = rel.Status.Conditions[:len(rel.Status.Conditions)-1]
	rel.Status.Conditions = append(rel.Status.Conditions, shipper.Condition{Type: "example.com/Ready", Status: "False"})
	f.settles()
	f.wants("a condition that is no longer True", map[string]int32{"a": 4, "b": 1, "c": 1, "d": 1})
	f.isAt(position.Position{Wave: 1})
}

func TestAWaveThatWasGoneBackFromNeedsItsBeforeTasksAgain(t *testing.T) {
	f := newFleet(t, 3)
	f.holdBefore(1, &shipper.WaveTasks{Approvals: 1})
	f.moves(0, 2)
	f.settles()
	f.moves(1, 0)
	f.approvals = []shipper.Approval{f.approval("bob")}
	f.tick()
	f.enters()
	f.settles()
	f.moves(1, 1)
	f.settles()
	f.moves(1, 0)
	f.settles()
	f.isAt(position.Position{Wave: 1}) // a move back within the wave asks for nothing
	f.moves(0, 2)
	f.settles()
	f.wants("gone back", map[string]int32{"a": 4, "b": 0, "c": 0, "d": 0})
	f.moves(1, 0)
	f.settles()
	f.wants("forward again", map[string]int32{"a": 4, "b": 0, "c": 0, "d": 0})
	f.approvals = append(f.approvals, f.approval("eve"))
	f.settles()
	f.wants("approved again", map[string]int32{"a": 4, "b": 1, "c": 1, "d": 1})
}

// TestAForgedStatusBeginsNoWave writes what a program with the right to write statuses may.
func TestAForgedStatusBeginsNoWave(t *testing.T) {
	f := newFleet(t, 3)
	rel := f.holdBefore(1, &shipper.WaveTasks{Approvals: 1})
	f.moves(0, 2)
	f.settles()
	f.moves(1, 0)
	f.untouched = []string{"b", "c", "d"}
	rel.Status.Progress.EnteredTime, rel.Status.Progress.ConvergedTime = new(metav1.NewTime(f.now)), new(metav1.NewTime(f.now))
	rel.Status.Progress.BeforeApprovals = &shipper.ReleaseApprovals{Required: 1, Users: []string{"eve"}}
	f.settles()
	f.wants("a forged status", map[string]int32{"a": 4})
	if diff := cmp.Diff(&shipper.ReleaseApprovals{Required: 1}, f.plan.Step.BeforeApprovals); diff != "" {
		t.Errorf("approvals (-want +got):\n%s", diff)
	}
}

// TestBeforeTasksHoldNoWayBack aborts a newer Release while the one before it waits: each cluster gets back what served there.
func TestBeforeTasksHoldNoWayBack(t *testing.T) {
	f := newFleet(t, 3)
	f.holdBefore(1, &shipper.WaveTasks{Approvals: 1})
	f.moves(0, 2)
	f.settles()
	f.moves(1, 0)
	f.settles()
	waits := f.newest().Name
	f.next(3)
	f.moves(0, 1)
	f.settles()
	f.wants("the newer Release", map[string]int32{"a": 2})
	newer := f.newest().Name
	f.bound = 4
	f.leave(newer)
	f.settles()
	f.wants("the Release that waits", map[string]int32{"a": 4})
	if f.runs[newer] != nil || f.newest().Name != waits {
		t.Errorf("the newer Release is left: %v", f.picture())
	}
	for _, cluster := range []string{"b", "c", "d"} {
		if here := f.runs["web-0"][cluster]; here == nil || *here != (run{4, 4}) {
			t.Errorf("%s does not have what served there: %v", cluster, here)
		}
	}
}
