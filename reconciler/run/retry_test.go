// SPDX-License-Identifier: Apache-2.0

package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// again is bob's retry of the run first, as it was created.
func again(edits ...func(*shipper.SequenceRun)) *shipper.SequenceRun {
	return fresh(append([]func(*shipper.SequenceRun){func(run *shipper.SequenceRun) {
		run.Spec.RetryOf = &shipper.RetryOf{Run: "first"}
		run.Spec.RequestedBy = shipper.ApprovalUser{Username: "bob", UID: "bob-uid"}
		run.Spec.Data = nil
	}}, edits...)...)
}

func from(task string) func(*shipper.SequenceRun) {
	return func(run *shipper.SequenceRun) { run.Spec.RetryOf.From = task }
}

func haveDeployed(run *shipper.SequenceRun) {
	run.Status.Tasks = []shipper.TaskStatus{
		{Name: "approval", Ordinal: 1, State: shipper.TaskFinished, Result: shipper.ResultPass},
		{Name: "deployment", Ordinal: 1, State: shipper.TaskFinished, Result: shipper.ResultPass},
	}
}

func undone(run *shipper.SequenceRun) {
	haveDeployed(run)
	run.Status.Tasks[1].Result = shipper.ResultFail
}

func TestARetryDoesAllOfTheFinishedRunThatItRepeats(t *testing.T) {
	there := func(before ...client.Object) []client.Object { return append(before, theShipyard()) }
	fails := ended(shipper.ResultFail)
	failed := there(runOf("first", fails))
	const of, task = `spec.retryOf.run: Invalid value: "first": `, `spec.retryOf.from: Invalid value: "deployment": `
	another := theShipyard()
	another.UID = "another"
	changed := theShipyard()
	changed.Spec.Stages[0].Sequences[0].Tasks = changed.Spec.Stages[0].Sequences[0].Tasks[1:] // no approval
	refusedAtOnce := func(run *shipper.SequenceRun) {
		run.Status.StartTime, run.Status.Conditions[0].Reason = nil, shipper.RunRefused
	}
	repeats := func(edits ...func(*shipper.SequenceRun)) client.Object {
		return runOf("second", append(edits, func(run *shipper.SequenceRun) {
			run.Spec.RetryOf = &shipper.RetryOf{Run: "first", From: "deployment"}
		})...)
	}
	spec := func(edit func(*shipper.SequenceRunSpec)) func(*shipper.SequenceRun) {
		return func(run *shipper.SequenceRun) { edit(&run.Spec) }
	}
	for sentence, tc := range map[string]newCase{
		"it repeats a run that failed": {again(), failed, ""},
		"it begins with a task, is held and skips what its stage requires": {
			again(from("deployment"), hold, spec(func(s *shipper.SequenceRunSpec) { s.SkipRequires = &shipper.SkipRequires{Reason: "haste"} })),
			there(runOf("first", undone, fails)), "",
		},
		"it repeats a run that followed": {
			again(), there(runOf("first", fails, func(run *shipper.SequenceRun) {
				run.Status.Resolved.TriggeredBy = &shipper.RunTrigger{Event: "e", Run: "x", Depth: 3}
			})), "",
		},
		"the same user repeats it":       {again(spec(func(s *shipper.SequenceRunSpec) { s.RequestedBy.Username = "ann" })), failed, ""},
		"the Shipyard was changed since": {again(), []client.Object{changed, runOf("first", fails)}, ""},
		"it deploys again what a run that failed later has deployed": {
			again(from("deployment")), there(runOf("first", haveDeployed, fails)), task +
				"task deployment of run first has done what was approved, and the approval must be given again: begin with approval",
		},
		"it begins with a task that the run did not come to": {again(from("deployment")), failed, task + "run first did not come to it"},
		"it repeats a run that was refused": {
			again(), there(runOf("first", fails, refusedAtOnce)), of + "was refused before it began: create a run without retryOf",
		},
		"another run has done with that approval what it would do": {
			again(from("deployment")), there(runOf("first", undone, fails), repeats(started)), task +
				"run second repeats it, and what was approved is done once: repeat that one, or begin with the approval",
		},
		"another run repeats it, and has not begun": {again(from("deployment")), there(runOf("first", undone, fails), repeats()), ""},
		"another run repeats it with the approval":  {again(), there(runOf("first", undone, fails), repeats(started)), ""},
		"the run that it repeats skipped what its stage requires": {
			again(inProduction), []client.Object{strict(), runOf("first", requires(""), in("production"), fails)},
			"stage production of shipyard yard requires more: version 1.2.3 has not passed in stage staging; no version has; to run it all the " +
				"same, set spec.skipRequires with a reason (the verb override on shipyards/production or shipyards of shipper.booking.com, " +
				"name yard, in namespace shop is needed)",
		},
		"it repeats a run that passed": {
			again(), there(runOf("first", haveDeployed, ended(shipper.ResultPass))),
			of + "has passed: set from to the task to begin with, or create a run without retryOf",
		},
		"the run is gone":      {again(), there(), `spec.retryOf.run: Not found: "first"`},
		"the run is under way": {again(), there(runOf("first", started)), of + "is under way: abort it, or wait until it has finished"},
		"it has other data": {
			again(requesting("1.2.3")), failed, "spec.data: Forbidden: is copied from run first: leave it out",
		},
		"it is of another stage": {
			again(inProduction), failed, "spec.stage: Forbidden: is copied from run first: leave it out",
		},
		"it is of another service": {
			again(spec(func(s *shipper.SequenceRunSpec) { s.Service = "shop" })), failed,
			"spec.service: Forbidden: is copied from run first: leave it out",
		},
		"the run is one of another Shipyard": {
			again(), there(runOf("first", fails, spec(func(s *shipper.SequenceRunSpec) { s.Shipyard = "other" }))),
			of + "is a run of Shipyard other",
		},
		"the Shipyard is another one of its name": {
			again(), []client.Object{another, runOf("first", fails)},
			of + "is a run of a Shipyard yard that was deleted: create a run without retryOf",
		},
	} {
		t.Run(sentence, tc.check)
	}
}

func TestWhatARetryDoes(t *testing.T) {
	first := runOf("first", ended(shipper.ResultFail), func(run *shipper.SequenceRun) {
		run.Status.Resolved.EarlierRequesters = []string{"carl", "bob", "dora"}
		run.Status.Resolved.TriggeredBy = &shipper.RunTrigger{Event: "e", Run: "x", Depth: 3}
	})
	got := newCase{again(), []client.Object{theShipyard(), first}, ""}.judged(t)
	want := first.Status.Resolved.DeepCopy()
	want.EarlierRequesters, want.TriggeredBy, want.RetryOfUID = []string{"ann", "carl", "dora"}, nil, "first-uid"
	want.Data = shipper.FreeForm{"weight": int64(5)}
	if diff := cmp.Diff(want, got.resolved); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A retry may wait for long. Meanwhile the run that it repeats can be deleted, and another one get its name.
func TestARetryBeginsOnlyIfTheRunThatItRepeatsIsThere(t *testing.T) {
	queued := runOf("again", func(run *shipper.SequenceRun) {
		run.Spec.RetryOf = &shipper.RetryOf{Run: "first"}
		run.Status.Resolved.RetryOfUID = "first-uid"
		run.Status.Conditions = []shipper.Condition{{Type: shipper.RunFinished, Status: "False", Reason: shipper.RunQueued}}
	})
	for sentence, tc := range map[string]struct {
		there *shipper.SequenceRun
		want  string
	}{
		"it is there": {runOf("first", ended(shipper.ResultFail)), ""},
		"it is gone":  {runOf("other", ended(shipper.ResultFail)), "run first, which it repeats, is gone"},
		"another run has its name": {
			runOf("first", ended(shipper.ResultFail), func(run *shipper.SequenceRun) { run.UID = "another" }),
			"run first, which it repeats, is gone",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			run := queued.DeepCopy()
			shipyard.Strip(run) // as the cache has it
			r := newReconciler(t, interceptor.Funcs{}, theShipyard(), tc.there, queued.DeepCopy())
			d, err := r.decide(t.Context(), run, judgement{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := shipper.FindCondition(d.Status.Conditions, shipper.RunFinished)
			if got.Message != tc.want || (got.Reason == shipper.RunRefused) != (tc.want != "") {
				t.Errorf("%+v, want %q", got, tc.want)
			}
			if !shipyard.Same(queued.Spec, run.Spec) {
				t.Error("the run that begins is not whole")
			}
		})
	}
}

// The promoter deletes the retry that used an approval, and repeats the run once more.
func TestAnApprovalIsUsedOnceWhateverIsDeleted(t *testing.T) {
	retry := func(name string) *shipper.SequenceRun {
		return runOf(name, func(run *shipper.SequenceRun) {
			run.Spec.RetryOf = &shipper.RetryOf{Run: "first", From: "deployment"}
			run.Status.Resolved.RetryOfUID = "first-uid"
			run.Status.Conditions = []shipper.Condition{{Type: shipper.RunFinished, Status: "False", Reason: shipper.RunQueued}}
		})
	}
	second, third := retry("second"), retry("third")
	r := newReconciler(t, interceptor.Funcs{}, theShipyard(), runOf("first", undone, ended(shipper.ResultFail)), second, third)
	begin := func(run *shipper.SequenceRun) (begins bool, why string) {
		t.Helper()
		if err := r.live.Get(t.Context(), client.ObjectKeyFromObject(run), run); err != nil {
			t.Fatal(err)
		}
		d, err := r.decideNext(t.Context(), run, judgement{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return d.Status.StartTime != nil, d.Status.Message
	}
	if begins, why := begin(second); !begins {
		t.Fatalf("the first retry does not begin: %s", why)
	}
	if err := r.client.Delete(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	begins, why := begin(third)
	const want = "run second repeated it, and what was approved is done once, also when that one was deleted: begin with the approval"
	if begins || why != want {
		t.Errorf("the second retry begins: %t, %q", begins, why)
	}
	fresh := retry("fourth")
	resolved := fresh.Status.Resolved
	fresh.Status = shipper.SequenceRunStatus{}
	r = newReconciler(t, interceptor.Funcs{}, theShipyard(), runOf("first", undone, ended(shipper.ResultFail)), fresh)
	if d, err := r.decideNext(t.Context(), fresh, judgement{resolved: resolved}, nil); err != nil || d.Status.StartTime == nil {
		t.Errorf("a retry that begins when it is resolved: %+v, %v", d.Status, err)
	}
	newCase{again(from("deployment")), []client.Object{theShipyard(), runOf("first", undone, ended(shipper.ResultFail),
		func(run *shipper.SequenceRun) {
			run.Status.RepeatedBy = &shipper.RepeatedBy{Name: "second", UID: "gone"}
		})},
		`spec.retryOf.from: Invalid value: "deployment": ` + want}.check(t)
}

// The run is aborted when it has made its Release, the Release is taken back, and the run is repeated on its approval.
func TestAReleaseThatWasTakenBackIsNotMadeAgainOnOneApproval(t *testing.T) {
	before := runOf("first", undone, ended(shipper.ResultFail), func(run *shipper.SequenceRun) {
		run.Status.Tasks[len(run.Status.Tasks)-1].Release = "web-2"
	})
	key := shipyard.ApplicationOfRun(before)
	release := func(name, generation string) *shipper.Release {
		return &shipper.Release{ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: name, Labels: map[string]string{shipper.AppLabel: key.Name},
			Annotations: map[string]string{shipper.ReleaseGenerationAnnotation: generation},
		}}
	}
	retry := runOf("again", func(run *shipper.SequenceRun) {
		run.Spec.RetryOf = &shipper.RetryOf{Run: "first", From: "deployment"}
		run.Status.Resolved.RetryOfUID = "first-uid"
	})
	const gone = "Release web-2, which run first made, is not the newest any more, and what was approved is done once: begin with the approval"
	for sentence, tc := range map[string]struct {
		there []client.Object
		want  string
	}{
		"it is the newest":      {[]client.Object{release("web-1", "1"), release("web-2", "2")}, ""},
		"it was taken back":     {[]client.Object{release("web-1", "1")}, gone},
		"another came after it": {[]client.Object{release("web-2", "2"), release("web-3", "3")}, gone},
	} {
		r := newReconciler(t, interceptor.Funcs{}, append(tc.there, theShipyard(), before.DeepCopy())...)
		if _, why, err := r.repeated(t.Context(), retry); err != nil || why != tc.want {
			t.Errorf("%s: %q, %v", sentence, why, err)
		}
	}
}
