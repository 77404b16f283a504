// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// promoting is a Shipyard whose stage production follows from staging, and requires it.
func promoting() *shipper.ShipyardSnapshot {
	return &shipper.ShipyardSnapshot{Stages: []shipper.Stage{
		{Name: "staging", Sequences: []shipper.Sequence{{Name: "delivery", Tasks: tasks("deployment")}}},
		{
			Name: "production", Requires: []shipper.StageRequirement{{Stage: "staging", Soak: "1h"}},
			Sequences: []shipper.Sequence{{
				Name: "delivery", Tasks: tasks("deployment"), TriggeredOn: []shipper.Trigger{{Event: "staging.delivery.finished"}},
			}},
		},
	}}
}

// resolvedBy is what a run of delivery does that ann repeats after bob.
func resolvedBy(of *shipper.ShipyardSnapshot, stage string) *shipper.ResolvedRun {
	out := Resolved(of, stage, "delivery")
	out.Revision, out.Context = shipper.ShipyardRevision{UID: "u", Name: "shop-1", Digest: Digest(of)}, "c"
	out.EarlierRequesters, out.Version = []string{"bob"}, shipper.RunVersion{Name: "web", Version: "1.2.3"}
	return out
}

// endedRun is a finished run of stage staging.
func endedRun(name string, result shipper.Result, at time.Time) *shipper.SequenceRun {
	return &shipper.SequenceRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
		Spec: shipper.SequenceRunSpec{
			Shipyard: "shop", Stage: "staging", Sequence: "delivery", Service: "web", RequestedBy: shipper.ApprovalUser{Username: "ann"},
			Data: shipper.FreeForm{"old": "x"}, Hold: "h", RetryOf: &shipper.RetryOf{Run: "x"},
		},
		Status: shipper.SequenceRunStatus{
			Resolved: resolvedBy(promoting(), "staging"),
			Result:   result, FinishTime: &metav1.Time{Time: at}, Data: shipper.FreeForm{"new": "y", "earlier": map[string]any{}, "result": "pass"},
			Conditions: []shipper.Condition{{Type: shipper.RunFinished, Status: "True"}},
		},
	}
}

func TestAFollowUpIsMadeOfTheRunBefore(t *testing.T) {
	run := endedRun("a", shipper.ResultPass, start)
	got := FollowUp(run, &shipper.TriggeredRun{Name: "web-production", Stage: "production", Sequence: "delivery", Event: "e"})
	want := &shipper.SequenceRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-production",
			Labels: map[string]string{
				shipper.ShipyardLabel: "shop", shipper.StageLabel: "production", shipper.SequenceLabel: "delivery", shipper.ServiceLabel: "web",
				shipper.TriggeredByLabel: "a",
			},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "shipper.booking.com/v1alpha1", Kind: "Shipyard", Name: "shop", UID: "u"},
			},
		},
		Spec: shipper.SequenceRunSpec{
			Shipyard: "shop", Stage: "production", Sequence: "delivery", Service: "web", RequestedBy: shipper.ApprovalUser{Username: "ann"},
			Data: shipper.FreeForm{"new": "y", "earlier": map[string]any{}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	run.Status.Triggered = []shipper.TriggeredRun{{Name: got.Name, Stage: "production", Sequence: "delivery", Event: "e"}}
	does, refusal := Inherit(got, run, promoting())
	inherits := resolvedBy(promoting(), "production")
	inherits.TriggeredBy = &shipper.RunTrigger{Event: "e", Run: "a", Depth: 1, Time: metav1.NewTime(start)}
	if diff := cmp.Diff(inherits, does); diff != "" || refusal != nil {
		t.Errorf("%v; what it does (-want +got):\n%s", refusal, diff)
	}
}

func TestAFollowUpAwaitsWhatItsStageRequires(t *testing.T) {
	run := endedRun("a", shipper.ResultPass, start)
	triggered := FollowUps(run, promoting())
	if len(triggered) != 1 {
		t.Fatalf("it triggers %v", triggered)
	}
	for after, want := range map[time.Duration]string{
		0: "version 1.2.3 passed in stage staging at 2026-03-01T12:00:00Z and has to soak for 1h: until 2026-03-01T13:00:00Z; " +
			"again in 1h0m0s",
		time.Hour: "; again in 0s",
	} {
		why, again := Awaits(run, promoting(), &triggered[0], []*shipper.SequenceRun{run}, start.Add(after))
		if got := fmt.Sprintf("%s; again in %s", why, again); got != want {
			t.Errorf("after %s: %s\nwant: %s", after, got, want)
		}
	}
}

// Two runs of a delivery that both lead to a stage with requires trigger one run, by its name.
func TestAFanInIsOneRun(t *testing.T) {
	one, two := endedRun("a", shipper.ResultPass, start), endedRun("b", shipper.ResultPass, start)
	one.Spec.RetryOf, two.Spec.RetryOf = nil, nil
	a, b := FollowUps(one, promoting()), FollowUps(two, promoting())
	if a[0].Name != b[0].Name {
		t.Errorf("%s and %s", a[0].Name, b[0].Name)
	}
}

func TestHistoryKeepsSomeRunsWhoseFollowUpsWait(t *testing.T) {
	var runs []*shipper.SequenceRun
	for i := range MaxAwaiting + 2 {
		run := endedRun(fmt.Sprintf("r%03d", i), shipper.ResultFail, start.Add(time.Duration(i)*time.Second))
		run.Status.Triggered = []shipper.TriggeredRun{{Name: "next"}}
		runs = append(runs, run)
	}
	surplus, _ := Surplus(runs, nil, &shipper.RunHistory{}, start.Add(time.Hour))
	if len(surplus) != 2 || surplus[1].Name != "r000" {
		t.Errorf("%d are too many", len(surplus))
	}
}

func TestHistoryKeepsWhatOtherRunsDependOn(t *testing.T) {
	limit := int32(1)
	old, back := endedRun("old", shipper.ResultFail, start), endedRun("back", shipper.ResultFail, start.Add(time.Second))
	old.Status.StartTime, back.Status.StartTime = &metav1.Time{Time: start}, &metav1.Time{Time: start}
	aborted := endedRun("aborted", shipper.ResultFail, start.Add(time.Minute)) // before it began
	next := endedRun("next", "", start)
	next.Status = shipper.SequenceRunStatus{}
	next.Spec.RetryOf, next.Labels = nil, map[string]string{shipper.TriggeredByLabel: "old"}
	for sentence, tc := range map[string]struct {
		known []*shipper.SequenceRun
		want  int
	}{
		"a run that one under way follows from": {[]*shipper.SequenceRun{old, back, aborted, next}, 0},
		"a run that nothing depends on":         {[]*shipper.SequenceRun{old, back, aborted}, 1},
	} {
		surplus, _ := Surplus(tc.known, Needed(tc.known), &shipper.RunHistory{Limit: &limit}, start.Add(time.Hour))
		if len(surplus) != tc.want || tc.want == 1 && surplus[0] != old {
			t.Errorf("%s: %d are too many", sentence, len(surplus))
		}
	}
}

func TestHistoryKeeps(t *testing.T) {
	runs := func(results ...shipper.Result) []*shipper.SequenceRun {
		var out []*shipper.SequenceRun
		for i, result := range results {
			out = append(out, endedRun(fmt.Sprint(i), result, start.Add(time.Duration(i)*time.Hour)))
		}
		return out
	}
	limit, day := int32(2), metav1.Duration{Duration: 24 * time.Hour}
	uncreated := runs(shipper.ResultFail, shipper.ResultFail, shipper.ResultFail)
	uncreated[0].Status.Triggered = []shipper.TriggeredRun{{Name: "x"}}
	for sentence, tc := range map[string]struct {
		runs    []*shipper.SequenceRun
		history shipper.RunHistory
		after   time.Duration
		want    []string
		again   time.Duration
	}{
		"the newest": {
			runs: runs("fail", "fail", "fail"), history: shipper.RunHistory{Limit: &limit, MaxAge: &day}, after: 2 * time.Hour,
			want: []string{"0"}, again: 23 * time.Hour,
		},
		"the newest that passed": {
			runs: runs("pass", "pass", "fail", "fail", "fail"), history: shipper.RunHistory{Limit: &limit, MaxAge: &day}, after: 100 * time.Hour,
			want: []string{"4", "3", "2", "0"},
		},
		"twenty for 30 days": {runs: runs("fail", "pass"), after: 700 * time.Hour, again: 20 * time.Hour},
		"what has to be done yet": {
			runs: uncreated, history: shipper.RunHistory{Limit: &limit, MaxAge: &day}, after: 3 * time.Hour, again: 22 * time.Hour,
		},
		"nothing that was never done": {
			runs: uncreated, history: shipper.RunHistory{Limit: &limit, MaxAge: &day}, after: 100 * time.Hour, want: []string{"2", "1", "0"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			surplus, again := Surplus(tc.runs, nil, &tc.history, start.Add(tc.after))
			var got []string
			for _, run := range surplus {
				got = append(got, run.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || again != tc.again {
				t.Errorf("again in %s; -want +got:\n%s", again, diff)
			}
		})
	}
}

func TestWhatFollowsFromARetryAndFromAnotherRunIsCreatedOnce(t *testing.T) {
	known := func(edit func(*shipper.SequenceRun)) *shipper.SequenceRun {
		other := endedRun("b", shipper.ResultPass, start)
		other.Spec.RetryOf = nil
		other.Status.Triggered = FollowUps(other, promoting())
		edit(other)
		return other
	}
	waits := func(*shipper.SequenceRun) {}
	for sentence, tc := range map[string]struct {
		other  *shipper.SequenceRun
		direct bool
		want   string
	}{
		"another run of the delivery waits for the retry": {known(waits), false, "run b of the delivery creates it"},
		"the run is no retry":                             {known(waits), true, ""},
		"it has just created it": {known(func(run *shipper.SequenceRun) {
			run.Status.Triggered[0].CreateTime = run.Status.FinishTime
		}), false, "run b of the delivery creates it"},
		"it had created it before the retry passed": {known(func(run *shipper.SequenceRun) {
			run.Status.Triggered[0].CreateTime = &metav1.Time{Time: start.Add(-time.Second)}
		}), false, ""},
		"it is refused there":                  {known(func(run *shipper.SequenceRun) { run.Status.Triggered[0].Refused = true }), false, ""},
		"it is another delivery":               {known(func(run *shipper.SequenceRun) { run.Status.Resolved.Context = "other" }), false, ""},
		"it leads to another stage":            {known(func(run *shipper.SequenceRun) { run.Status.Triggered[0].Stage = "x" }), false, ""},
		"it leads to another sequence":         {known(func(run *shipper.SequenceRun) { run.Status.Triggered[0].Sequence = "x" }), false, ""},
		"it is a retry, too, of a higher name": {known(func(run *shipper.SequenceRun) { run.Spec.RetryOf = &shipper.RetryOf{} }), false, ""},
		"it is a retry, too, of a lower name": {known(func(run *shipper.SequenceRun) {
			run.Spec.RetryOf, run.Name = &shipper.RetryOf{}, "0"
		}), false, "run 0 of the delivery creates it"},
	} {
		retry := endedRun("a", shipper.ResultPass, start)
		if tc.direct {
			retry.Spec.RetryOf = nil
		}
		if got := Unneeded(retry, promoting(), &FollowUps(retry, promoting())[0], []*shipper.SequenceRun{retry, tc.other}); got != tc.want {
			t.Errorf("%s: %q, want %q", sentence, got, tc.want)
		}
	}
	free, requiresNothing := endedRun("a", shipper.ResultPass, start), promoting()
	requiresNothing.Stages[1].Requires = nil
	if got := Unneeded(free, requiresNothing, &FollowUps(free, requiresNothing)[0], []*shipper.SequenceRun{known(waits)}); got != "" {
		t.Errorf("to a stage that requires nothing: %q", got)
	}
}

func TestCirclesOfTriggersEndWhereHistoryKeepsNoRun(t *testing.T) {
	run := endedRun("a", shipper.ResultPass, start)
	for depth, want := range map[int32]string{
		99: "", 100: "more than 100 runs lead here, each triggered by the one before: the triggers are a circle",
	} {
		run.Status.Resolved.TriggeredBy = &shipper.RunTrigger{Run: "x", Depth: depth}
		if got := Unneeded(run, promoting(), &FollowUps(run, promoting())[0], nil); got != want {
			t.Errorf("after %d runs: %q, want %q", depth, got, want)
		}
	}
}

func TestARetryCarriesTheTasksBefore(t *testing.T) {
	s := begin(t, tasks("deployment", "test", "test", "release")...)
	first := s.creates("a", "delivery")
	s.decides(first, nil)
	s.decides(first, &Outcome{Result: shipper.ResultPass, Completion: shipper.CompletionSucceeded, Release: "ns/web-1"})
	s.decides(first, passed)
	s.decides(first, broken)
	s.lines = nil
	again := s.creates("b", "delivery", func(run *shipper.SequenceRun) { run.Spec.RetryOf = &shipper.RetryOf{Run: "a", From: "test#2"} })
	d := Plan(Observed{Run: again, RetryOf: first, Snapshot: s.of(), Now: s.now})
	again.Status = d.Status
	s.lines = append(s.lines, told(again, d), again.Status.Tasks[0].Release)
	lost := s.creates("c", "delivery", func(run *shipper.SequenceRun) { run.Spec.RetryOf = &shipper.RetryOf{Run: "a", From: "test#2"} })
	d = Plan(Observed{Run: lost, Snapshot: s.of(), Now: s.now})
	lost.Status = d.Status
	s.lines = append(s.lines, told(lost, d))
	s.tells(
		"Running [deployment Carried pass, test Carried pass, test#2 Triggered] do test#2", "ns/web-1",
		"Failed [] (run a is gone, or did not come to task test#2: repeat the whole run) triggers staging.rollback",
	)
}

func TestASubjectIsWhatADeploymentWouldWrite(t *testing.T) {
	run := endedRun("a", "", start)
	run.Status = shipper.SequenceRunStatus{Resolved: run.Status.Resolved}
	run.Status.Resolved.Sequence.Tasks[0].Properties = shipper.FreeForm{
		"values": map[string]any{"a": "1", "b": map[string]any{"c": "2"}},
	}
	run.Spec.Data = shipper.FreeForm{"configurationChange": map[string]any{"values": map[string]any{"b": map[string]any{"d": "3"}}}}
	want := shipper.FreeForm{"a": "1", "b": map[string]any{"c": "2", "d": "3"}}
	if diff := cmp.Diff(want, ValuesOf(run)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	before := Subject(run)
	run.Status.Data = run.Spec.Data
	if Subject(run) != before {
		t.Error("it changes when the run begins")
	}
	other := run.DeepCopy()
	other.Status.Resolved.Version.Digest = "ab"
	if Subject(other) == before {
		t.Error("it does not change with the digest of the archive")
	}
	run.Status.Data = shipper.FreeForm{"configurationChange": map[string]any{"values": map[string]any{"b": "x"}}}
	if Subject(run) == before {
		t.Error("it does not change with the values")
	}
}
