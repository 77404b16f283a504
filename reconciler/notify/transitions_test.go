// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// after is a time some seconds after noon.
func after(seconds int) metav1.Time {
	return metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second))
}

// release is one of three steps that was created at noon, changed by edits.
func release(edits ...func(*shipper.Release)) *shipper.Release {
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-1", UID: "uid", CreationTimestamp: after(0), Labels: map[string]string{shipper.AppLabel: "web"},
		Annotations: map[string]string{shipper.ReleaseRequestedByAnnotation: "ann"},
	}}
	rel.Spec.Environment.Strategy = &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{
		{Name: "staging"}, {Name: "canary"}, {Name: "full on"},
	}}
	for _, edit := range edits {
		edit(rel)
	}
	return rel
}

func condition(kind string, status corev1.ConditionStatus, at int, texts ...string) func(*shipper.Release) {
	return func(rel *shipper.Release) {
		c := shipper.Condition{Type: kind, Status: status}
		if len(texts) > 0 {
			c.Reason, c.Message = texts[0], strings.Join(texts[1:], "")
		}
		rel.Status.Conditions = shipper.SetCondition(rel.Status.Conditions, c, after(at))
	}
}

// achieved is a step that was requested and achieved; without Advancing it waits for a command unless it is the last.
func achieved(step int32, at int) func(*shipper.Release) {
	return func(rel *shipper.Release) {
		rel.Spec.TargetStep = step
		rel.Status.AchievedStep = &shipper.AchievedStep{Step: step, Name: rel.Spec.Environment.Strategy.Steps[step].Name}
		rel.Status.Strategy = &shipper.ReleaseStrategyStatus{}
		if step < 2 {
			rel.Status.Strategy.State.WaitingForCommand = shipper.StrategyStateTrue
		}
		condition(shipper.ReleaseStrategyExecuted, corev1.ConditionTrue, at)(rel)
	}
}

func under(o shipper.ReleaseOutcome) func(*shipper.Release) {
	return func(rel *shipper.Release) { rel.Status.Summary = &shipper.ReleaseSummary{Outcome: o} }
}

func waves(rel *shipper.Release) {
	s := *rel.Spec.Environment.Strategy
	s.Waves = []shipper.Wave{{Name: "canary"}, {Name: "rest"}}
	rel.Spec.Environment.Strategy = &s
}

// toWave makes the last move one between waves.
func toWave(from, to int32) func(*shipper.Release) {
	return func(rel *shipper.Release) {
		rel.Spec.TargetWave = &to
		note := rel.Annotations[shipper.ReleaseMovedAnnotation]
		rel.Annotations[shipper.ReleaseMovedAnnotation] = fmt.Sprintf(`%s,"fromWave":%d,"toWave":%d}`, note[:len(note)-1], from, to)
	}
}

func moved(from, to int32, count, at int, by, why string) func(*shipper.Release) {
	return func(rel *shipper.Release) {
		rel.Spec.TargetStep = to
		rel.Annotations[shipper.ReleaseMovedAnnotation] = fmt.Sprintf(`{"by":%q,"time":%q,"from":%d,"to":%d,"count":%d,"why":%q}`,
			by, after(at).UTC().Format(time.RFC3339), from, to, count, why)
	}
}

func deleted(at int) func(*shipper.Release) {
	return func(rel *shipper.Release) { rel.DeletionTimestamp = &metav1.Time{Time: after(at).Time} }
}

// advancing is the condition Advancing of the requested step, which only strategies that do something by themselves have.
func advancing(status corev1.ConditionStatus, at int, reason string, message ...string) func(*shipper.Release) {
	return func(rel *shipper.Release) {
		rel.Status.Progress = &shipper.ReleaseProgress{Step: rel.Spec.TargetStep, Move: stamp.Moved(rel).Count}
		condition(shipper.ReleaseAdvancing, status, at, append([]string{reason}, message...)...)(rel)
	}
}

// approving waits for approvals of step 1, which converged at a time.
func approving(at int, message string) func(*shipper.Release) {
	return func(rel *shipper.Release) {
		achieved(0, 1)(rel)
		rel.Spec.TargetStep = 1
		condition(shipper.ReleaseStrategyExecuted, corev1.ConditionFalse, 2, shipper.ApprovalsNeeded)(rel)
		advancing(corev1.ConditionFalse, 3, shipper.AdvancingAwaitingApproval, message)(rel)
		rel.Status.Progress.ConvergedTime = new(after(at))
	}
}

// in is one line for each event.
func in(events []Event) []string {
	var out []string
	for _, e := range events {
		at := "-"
		if !e.Time.IsZero() {
			at = fmt.Sprint(int(e.Time.Sub(noon) / time.Second))
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %d (%s) by %s: %s %s",
			at, e.Word, e.Step, e.StepName, e.User, e.Reason, e.Message)))
	}
	return out
}

func TestTransitions(t *testing.T) {
	const waits = "AwaitingCommand waits until targetStep is raised to "
	executing := condition(shipper.ReleaseStrategyExecuted, corev1.ConditionFalse, 1)
	failure := func(rel *shipper.Release) {
		rel.Status.Progress = &shipper.ReleaseProgress{Failure: &shipper.ReleaseFailure{Step: 1, Message: "no Pods"}}
	}
	for sentence, tc := range map[string]struct {
		was, is *shipper.Release
		want    []string
	}{
		"a new Release":             {nil, release(), []string{"0 Started 0 (staging) by ann:"}},
		"nothing has changed":       {release(achieved(0, 5)), release(achieved(0, 5)), nil},
		"a message changes nothing": {release(executing), release(condition(shipper.ReleaseStrategyExecuted, "False", 9, "x", "y")), nil},
		"a step is achieved": {release(executing), release(achieved(0, 5)), []string{
			"5 StepAchieved 0 (staging) by ann:", "5 Waiting 0 (staging) by ann: " + waits + "1",
		}},
		"a step that goes on by itself does not wait": {
			release(executing, advancing("True", 1, "Moving")), release(achieved(0, 5), advancing("True", 1, "Soaking")),
			[]string{"5 StepAchieved 0 (staging) by ann:"},
		},
		"a gate waits": {
			release(executing, advancing("True", 1, "Moving")), release(achieved(1, 5), advancing("False", 5, "AwaitingCommand", "waits for 2")),
			[]string{"5 StepAchieved 1 (canary) by ann:", "5 Waiting 1 (canary) by ann: AwaitingCommand waits for 2"},
		},
		"a gate waits for approvals": {
			release(achieved(0, 1), func(rel *shipper.Release) { rel.Spec.TargetStep = 1 }, advancing("False", 3, "ClustersNotOperational")),
			release(approving(6, "step 1 has 0 of 2 approvals")),
			[]string{"6 Waiting 1 (canary) by ann: AwaitingApproval step 1 has 0 of 2 approvals"},
		},
		"one of two users approves": {release(approving(6, "0 of 2")), release(approving(6, "1 of 2")), nil},
		"all have approved, and a user must raise targetStep": {
			release(approving(6, "1 of 2")), release(approving(6, ""), achieved(1, 9), advancing("False", 3, "AwaitingCommand", "waits for 2")),
			[]string{"9 StepAchieved 1 (canary) by ann:", "9 Waiting 1 (canary) by ann: AwaitingCommand waits for 2"},
		},
		"all have approved, and the step goes on by itself": {
			release(approving(6, "1 of 2")), release(approving(6, ""), achieved(1, 9), advancing("True", 9, "Soaking")),
			[]string{"9 StepAchieved 1 (canary) by ann:"},
		},
		"targetStep was raised and the condition is of the step before": {
			nil, release(achieved(0, 5), advancing("False", 5, "AwaitingCommand"), func(rel *shipper.Release) { rel.Spec.TargetStep = 1 }),
			[]string{"0 Started 0 (staging) by ann:"},
		},
		"the last step is achieved": {
			release(achieved(1, 5)), release(achieved(2, 9), condition(shipper.ReleaseComplete, "True", 9), under("Complete")),
			[]string{"9 StepAchieved 2 (full on) by ann:", "9 Completed 2 (full on) by ann:"},
		},
		"the deadline has passed": {
			release(condition(shipper.ReleaseFailed, "False", 1)),
			release(condition(shipper.ReleaseFailed, "True", 7, "ProgressDeadlineExceeded", "no Pods"), failure, under("Failed")),
			[]string{"7 Failed 1 (canary) by ann: ProgressDeadlineExceeded no Pods"},
		},
		"it goes back by itself": {
			release(failure, moved(0, 1, 1, 2, "ann", "")), release(failure, moved(1, 0, 2, 8, "shipper", "RolloutFailed")),
			[]string{"8 WentBack 0 (staging) by shipper: RolloutFailed went back from step 1 to step 0: no Pods"},
		},
		"a user goes back": {release(), release(moved(1, 0, 2, 8, "bob", "")), []string{
			"8 WentBack 0 (staging) by bob:  went back from step 1 to step 0",
		}},
		"a user goes on":       {release(), release(moved(0, 1, 1, 8, "bob", "")), nil},
		"the next wave begins": {release(waves), release(waves, moved(2, 0, 2, 8, "bob", ""), toWave(0, 1)), nil},
		"a user goes back a wave": {release(waves), release(waves, moved(0, 2, 2, 8, "bob", ""), toWave(1, 0)), []string{
			"8 WentBack 2 (full on) by bob:  went back from step 0 of wave rest to step 2 of wave canary",
		}},
		"it is deleted": {release(under("InProgress")), release(under("InProgress"), deleted(8)), []string{
			"8 Aborted 0 (staging) by ann:  the Release was deleted before it was complete",
		}},
		"an old one is deleted":     {release(under("Superseded")), release(under("Superseded"), deleted(8)), nil},
		"a complete one is deleted": {release(under("Complete")), release(under("Complete"), deleted(8)), nil},
		"it is rolled back": {
			release(under("Complete"), achieved(2, 5)), release(under("RolledBack"), achieved(2, 5)),
			[]string{"- RolledBack 2 (full on) by ann:  a rollback has replaced the Release"},
		},
		"a block begins": {
			release(under("InProgress")), release(under("InProgress"), condition(shipper.ReleaseBlocked, "True", 8, "RolloutsBlocked", "dns")),
			[]string{"8 Blocked 0 (staging) by ann: RolloutsBlocked dns"},
		},
		"a block begins and there is nothing to stop": {
			release(under("Complete")), release(under("Complete"), condition(shipper.ReleaseBlocked, "True", 8)), nil,
		},
		"a block ends": {
			release(under("InProgress"), condition(shipper.ReleaseBlocked, "True", 8)),
			release(under("InProgress"), condition(shipper.ReleaseBlocked, "False", 9)), []string{"9 Unblocked 0 (staging) by ann:"},
		},
		"there is no block": {release(), release(condition(shipper.ReleaseBlocked, "False", 9)), nil},
		"all that a Release shows, in the order of time": {
			nil, release(achieved(2, 9), condition(shipper.ReleaseComplete, "True", 9), under("RolledBack"),
				condition(shipper.ReleaseFailed, "False", 3)),
			[]string{"0 Started 0 (staging) by ann:", "9 StepAchieved 2 (full on) by ann:", "9 Completed 2 (full on) by ann:"},
		},
	} {
		if diff := cmp.Diff(tc.want, in(Transitions(tc.was, tc.is))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}

// TestTheBeginningOfAWaveIsAWaitOfItsOwn approves a wave of one step twice: before it begins, and at its end.
func TestTheBeginningOfAWaveIsAWaitOfItsOwn(t *testing.T) {
	begins := release(approving(6, "the beginning of wave canary has 0 of 1 approvals"), func(rel *shipper.Release) {
		rel.Status.Progress.ConvergedTime, rel.Status.Progress.BeforeApprovals = nil, &shipper.ReleaseApprovals{Required: 1}
	})
	ends := release(approving(6, "0 of 1"), func(rel *shipper.Release) {
		rel.Status.Progress.BeforeApprovals = &shipper.ReleaseApprovals{Required: 1, Users: []string{"bob"}}
	})
	first, second, again := Transitions(nil, begins), Transitions(begins, ends), Transitions(nil, ends)
	last := func(events []Event) Event { return events[len(events)-1] }
	if last(first).Word != "Waiting" || len(second) != 1 || second[0].Word != "Waiting" || last(first).ID == second[0].ID ||
		second[0].ID != last(again).ID {
		t.Errorf("the waits are %+v, %+v, %+v", first, second, again)
	}
}

// TestIDsAreThoseOfTheChange derives the same changes from an update and from what a Release shows later.
func TestIDsAreThoseOfTheChange(t *testing.T) {
	ids := func(events []Event) map[shipper.NotificationEvent]string {
		out := map[shipper.NotificationEvent]string{}
		for _, e := range events {
			out[e.Word] = e.ID
		}
		return out
	}
	executing := condition(shipper.ReleaseStrategyExecuted, corev1.ConditionFalse, 1)
	seen := ids(Transitions(release(executing), release(achieved(1, 5))))
	again := ids(Transitions(nil, release(achieved(1, 5))))
	for _, word := range []shipper.NotificationEvent{shipper.NotificationStepAchieved, shipper.NotificationWaiting} {
		if seen[word] == "" || seen[word] != again[word] {
			t.Errorf("%s has the ID %q when it is seen and %q when it is derived again", word, seen[word], again[word])
		}
		recovered := ids(Transitions(release(achieved(1, 5), condition(shipper.ReleaseStrategyExecuted, "False", 6)), release(achieved(1, 7))))
		if recovered[word] != seen[word] {
			t.Errorf("%s is another change after lost Pods came back", word)
		}
		anew := ids(Transitions(release(executing), release(moved(2, 1, 3, 6, "ann", ""), achieved(1, 7))))
		if anew[word] == seen[word] {
			t.Errorf("%s is the same change after the step was requested again", word)
		}
	}
	forCommand := ids(Transitions(nil, release(approving(6, ""), achieved(1, 9), advancing("False", 3, "AwaitingCommand"))))
	forApproval := ids(Transitions(release(), release(approving(6, "0 of 2"))))
	derivedAgain := ids(Transitions(nil, release(approving(6, "1 of 2"))))
	if forApproval["Waiting"] == forCommand["Waiting"] || forApproval["Waiting"] != derivedAgain["Waiting"] {
		t.Error("the wait for approvals has the ID of the wait for a command, or another when it is derived again")
	}
	inTheSameSecond := ids(Transitions(release(executing), release(moved(2, 1, 3, 0, "ann", ""), achieved(1, 5))))
	if inTheSameSecond["Waiting"] == seen["Waiting"] {
		t.Error("it is the same change after the step was requested again in the same second")
	}
	complete := release(achieved(2, 5), condition(shipper.ReleaseComplete, "True", 5), under("Complete"))
	goingBack := complete.DeepCopy()
	goingBack.Spec.TargetStep = 0
	if ids(Transitions(nil, complete))["Completed"] != ids(Transitions(nil, goingBack))["Completed"] {
		t.Error("it is another change when a user goes back before it is derived again")
	}
	blocked := func(at int) string {
		return Transitions(release(), release(condition(shipper.ReleaseBlocked, "True", at)))[0].ID
	}
	if first, second := blocked(3), blocked(3); first == blocked(4) || first != second {
		t.Error("blocks of different times are the same change, or one of the same time is not")
	}
	other := release()
	other.UID = "other"
	if Transitions(nil, other)[0].ID == Transitions(nil, release())[0].ID {
		t.Error("two Releases have the same change")
	}
}
