// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// forgedCase is a new run, and the objects that exist.
type forgedCase struct {
	run     *shipper.SequenceRun
	objects []client.Object
	want    string
}

func (tc forgedCase) check(t *testing.T) {
	t.Helper()
	got, err := isForged(t, newReconciler(t, interceptor.Funcs{}, tc.objects...), tc.run)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tc.want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// isForged judges a run with the one that it repeats, as decide does.
func isForged(t *testing.T, r *Reconciler, run *shipper.SequenceRun) (string, error) {
	t.Helper()
	var before *shipper.SequenceRun
	if of := run.Spec.RetryOf; of != nil {
		var err error
		if before, err = r.namedNow(t.Context(), run.Namespace, of.Run); err != nil {
			return "", err
		}
	}
	return r.forged(t.Context(), run, before)
}

// A retry may wait for long. Meanwhile the run that it repeats can be deleted, and another one get its name.
func TestARetryBeginsOnlyIfTheRunThatItRepeatsIsThere(t *testing.T) {
	queued := again(func(run *shipper.SequenceRun) {
		run.Status.Conditions = []shipper.Condition{{Type: shipper.RunFinished, Status: "False", Reason: shipper.RunQueued}}
	})
	for sentence, tc := range map[string]struct {
		there *shipper.SequenceRun
		want  string
	}{
		"it is there": {runOf("first", ended(shipper.ResultFail)), ""},
		"another run has its name, with other data": {
			runOf("first", ended(shipper.ResultFail), func(run *shipper.SequenceRun) { run.Spec.Data = nil }),
			"it does not repeat run first: create it again",
		},
		"another run has its name, of another sequence": {
			runOf("first", func(run *shipper.SequenceRun) { run.Spec.Sequence = "evaluation" }, ended(shipper.ResultFail)),
			"it does not repeat run first: create it again",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			run := queued.DeepCopy()
			shipyard.Strip(run) // as the cache has it
			d, err := newReconciler(t, interceptor.Funcs{}, theShipyard(), tc.there, queued.DeepCopy()).decide(t.Context(), run, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := shipper.FindCondition(d.Status.Conditions, shipper.RunFinished).Message; got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if !shipyard.Same(queued.Spec, run.Spec) {
				t.Error("the run that begins is not whole")
			}
		})
	}
}

func TestARunThatWaitsIsDecidedAboutWithoutARead(t *testing.T) {
	held := again(func(run *shipper.SequenceRun) {
		run.Spec.Hold = "later"
		run.Status.Conditions = []shipper.Condition{{Type: shipper.RunFinished, Status: "False", Reason: shipper.RunPaused}}
	})
	d, err := newReconciler(t, interceptor.Funcs{}).decide(t.Context(), held, nil) // there is nothing to read
	if err != nil || !shipyard.StillWaits(&d.Status) {
		t.Errorf("%+v, %v", d.Status, err)
	}
}

// followUp is what the reconciler creates at the end of the run first, as it is read again.
func followUp(edits ...func(*shipper.SequenceRun)) *shipper.SequenceRun {
	before := runOf("first", ended(shipper.ResultPass))
	run := shipyard.FollowUp(before, &before.Status.Triggered[0])
	run.UID = "next-uid"
	run.Spec.Data = shipper.FreeForm{"weight": float64(6)} // as another decoder reads it
	for _, edit := range edits {
		edit(run)
	}
	return run
}

func TestAFollowUpIsForgedUnlessTheRunBeforeTriggersItAsItIs(t *testing.T) {
	passed := []client.Object{runOf("first", ended(shipper.ResultPass))}
	const not = "it does not follow from run first"
	for sentence, tc := range map[string]forgedCase{
		"it is what the run before triggers": {followUp(), passed, ""},
		"a user has held it and aborts it": {
			followUp(func(run *shipper.SequenceRun) { run.Spec.Hold, run.Spec.Abort = "lunch", "wrong" }), passed, "",
		},
		"the run before is gone": {followUp(), nil, "there is no run first, from which it says that it follows"},
		"the run before is in another namespace": {
			followUp(func(run *shipper.SequenceRun) { run.Namespace = "other" }), passed,
			"there is no run first, from which it says that it follows",
		},
		"the run before is under way": {followUp(), []client.Object{runOf("first", started)}, not},
		"the run before failed and triggers nothing": {
			followUp(), []client.Object{runOf("first", ended(shipper.ResultFail))}, not,
		},
		"it has another name": {followUp(func(run *shipper.SequenceRun) { run.Name = "mine" }), passed, not},
		"its snapshot has no approval": {followUp(func(run *shipper.SequenceRun) {
			run.Spec.Snapshot.Stages[1].Sequences[0].Tasks = run.Spec.Snapshot.Stages[1].Sequences[0].Tasks[1:]
		}), passed, not},
		"its snapshot has another ServiceAccount": {
			followUp(func(run *shipper.SequenceRun) { run.Spec.Snapshot.ServiceAccountName = "admin" }), passed, not,
		},
		"another user requested it": {
			followUp(func(run *shipper.SequenceRun) { run.Spec.RequestedBy.Username = "eve" }), passed, not,
		},
		"it has earlier requesters": {
			followUp(func(run *shipper.SequenceRun) { run.Spec.EarlierRequesters = []string{"eve"} }), passed, not,
		},
		"it has the data of the beginning": {
			followUp(func(run *shipper.SequenceRun) { run.Spec.Data = shipper.FreeForm{"weight": int64(5)} }), passed, not,
		},
		"it has another version": {followUp(func(run *shipper.SequenceRun) { run.Spec.Version.Version = "6.6.6" }), passed, not},
		"it is of another stage": {followUp(func(run *shipper.SequenceRun) { run.Spec.Stage = "staging" }), passed, not},
		"it names another event": {followUp(func(run *shipper.SequenceRun) { run.Spec.TriggeredBy.Event = "x" }), passed, not},
		"it skips what its stage requires": {
			followUp(func(run *shipper.SequenceRun) { run.Spec.SkipRequires = &shipper.SkipRequires{Reason: "haste"} }), passed, not,
		},
		"it is a retry as well": {
			followUp(func(run *shipper.SequenceRun) { run.Spec.RetryOf = &shipper.RetryOf{Run: "first"} }), passed, not,
		},
	} {
		t.Run(sentence, tc.check)
	}
}

// again is what bob's retry of the run first is, as the webhook writes it.
func again(edits ...func(*shipper.SequenceRun)) *shipper.SequenceRun {
	return runOf("again", append([]func(*shipper.SequenceRun){func(run *shipper.SequenceRun) {
		run.Spec.RetryOf = &shipper.RetryOf{Run: "first"}
		run.Spec.RequestedBy = shipper.ApprovalUser{Username: "bob", UID: "bob-uid"}
		run.Spec.EarlierRequesters = []string{"ann"}
	}}, edits...)...)
}

func TestARetryIsForgedUnlessItHasAllOfTheFinishedRunThatItRepeats(t *testing.T) {
	there := func(before ...client.Object) []client.Object { return append(before, theShipyard()) }
	failed := there(runOf("first", ended(shipper.ResultFail)))
	const not = "it does not repeat run first: create it again"
	requesters := func(by string, earlier ...string) func(*shipper.SequenceRun) {
		return func(run *shipper.SequenceRun) {
			run.Spec.RequestedBy.Username, run.Spec.EarlierRequesters = by, earlier
		}
	}
	second := there(runOf("first", requesters("ann", "carl", "dora"), ended(shipper.ResultFail)))
	changed, another := theShipyard(), theShipyard()
	changed.Generation++
	another.UID = "another"
	triggered := func(run *shipper.SequenceRun) { run.Spec.TriggeredBy = &shipper.RunTrigger{Event: "e", Run: "x"} }
	from := func(run *shipper.SequenceRun) { run.Spec.RetryOf.From = "deployment" }
	deployed := func(run *shipper.SequenceRun) {
		run.Status.Tasks = []shipper.TaskStatus{
			{Name: "approval", Ordinal: 1, State: shipper.TaskFinished, Result: shipper.ResultPass},
			{Name: "deployment", Ordinal: 1, State: shipper.TaskFinished, Result: shipper.ResultPass},
		}
	}
	undone := func(run *shipper.SequenceRun) { run.Status.Tasks[1].Result = shipper.ResultFail }
	refusedAtOnce := func(run *shipper.SequenceRun) {
		run.Status.StartTime, run.Status.Conditions[0].Reason = nil, shipper.RunFailed
	}
	repeats := func(edits ...func(*shipper.SequenceRun)) client.Object {
		return runOf("second", append(edits, func(run *shipper.SequenceRun) {
			run.Spec.RetryOf = &shipper.RetryOf{Run: "first", From: "deployment"}
		})...)
	}
	strict := theShipyard()
	strict.Spec.Stages[1].Requires = []shipper.StageRequirement{{Stage: "staging"}}
	required := func(run *shipper.SequenceRun) {
		run.Spec.Stage, run.Spec.Snapshot = "production", shipyard.Snapshot(strict)
	}
	for sentence, tc := range map[string]forgedCase{
		"it has all of the run that failed": {again(), failed, ""},
		"it begins with a task, is held and skips what its stage requires": {again(func(run *shipper.SequenceRun) {
			run.Spec.RetryOf.From, run.Spec.SkipRequires, run.Spec.Hold = "deployment", &shipper.SkipRequires{Reason: "haste"}, "lunch"
		}), there(runOf("first", deployed, undone, ended(shipper.ResultFail))), ""},
		"it deploys again what a run that failed later has deployed": {
			again(from), there(runOf("first", deployed, ended(shipper.ResultFail))),
			"task deployment of run first has done what was approved, and the approval must be given again: begin with approval",
		},
		"it begins with a task that the run did not come to": {again(from), failed, "run first did not come to it"},
		"it repeats a run that was refused": {
			again(), there(runOf("first", ended(shipper.ResultFail), refusedAtOnce)),
			"run first was refused before it began: create a run without retryOf",
		},
		"another run has done with that approval what it would do": {
			again(from), there(runOf("first", deployed, undone, ended(shipper.ResultFail)), repeats(started)),
			"run second repeats it, and what was approved is done once: repeat that one, or begin with the approval",
		},
		"another run repeats it, and has not begun": {
			again(from), there(runOf("first", deployed, undone, ended(shipper.ResultFail)), repeats()), "",
		},
		"another run repeats it with the approval": {
			again(), there(runOf("first", deployed, undone, ended(shipper.ResultFail)), repeats(started)), "",
		},
		"the run that it repeats skipped what its stage requires": {
			again(required), []client.Object{strict, runOf("first", required, ended(shipper.ResultFail))},
			"version 1.2.3 has not passed in stage staging; no version has",
		},
		"it repeats a run that passed": {
			again(), there(runOf("first", deployed, ended(shipper.ResultPass))),
			"run first has passed: name the task to do again in spec.retryOf.from",
		},
		"it deploys again what was approved once": {
			again(from), there(runOf("first", deployed, ended(shipper.ResultPass))),
			"task deployment of run first has done what was approved, and the approval must be given again: begin with approval",
		},
		"the same user repeats it":                {again(requesters("ann")), failed, ""},
		"it repeats a run that followed":          {again(), there(runOf("first", triggered, ended(shipper.ResultFail))), ""},
		"it has all who requested it before":      {again(requesters("bob", "ann", "carl", "dora")), second, ""},
		"it has them in another order":            {again(requesters("dora", "carl", "ann")), second, ""},
		"the run is gone":                         {again(), nil, not},
		"the run is under way":                    {again(), there(runOf("first", started)), not},
		"it lacks the requester":                  {again(requesters("bob")), failed, not},
		"it lacks one who requested it before":    {again(requesters("bob", "ann", "dora")), second, not},
		"it has other data":                       {again(func(run *shipper.SequenceRun) { run.Spec.Data = nil }), failed, not},
		"it has another version":                  {again(func(run *shipper.SequenceRun) { run.Spec.Version.Version = "6.6.6" }), failed, not},
		"it is of another stage":                  {again(func(run *shipper.SequenceRun) { run.Spec.Stage = "production" }), failed, not},
		"it is of another service":                {again(func(run *shipper.SequenceRun) { run.Spec.Service = "shop" }), failed, not},
		"it is of another delivery":               {again(func(run *shipper.SequenceRun) { run.Spec.Context = "other" }), failed, not},
		"it is of another Shipyard":               {again(func(run *shipper.SequenceRun) { run.Spec.Shipyard = "other" }), failed, not},
		"it has a snapshot of another generation": {again(func(run *shipper.SequenceRun) { run.Spec.Snapshot.Generation = 3 }), failed, not},
		"its snapshot has no approval": {again(func(run *shipper.SequenceRun) {
			run.Spec.Snapshot.Stages[0].Sequences[0].Tasks = run.Spec.Snapshot.Stages[0].Sequences[0].Tasks[1:]
		}), failed, not},
		"the Shipyard was changed since":          {again(), []client.Object{changed, runOf("first", ended(shipper.ResultFail))}, ""},
		"the Shipyard is another one of its name": {again(), []client.Object{another, runOf("first", ended(shipper.ResultFail))}, not},
	} {
		t.Run(sentence, tc.check)
	}
}

// many are unfinished runs of other deliveries.
func many(n int) []client.Object {
	var out []client.Object
	for i := range n {
		out = append(out, runOf(fmt.Sprintf("r%d", i), func(run *shipper.SequenceRun) { run.Spec.Context = "other" }))
	}
	return out
}

func TestARunOfAUserIsForgedUnlessItsSnapshotIsTheShipyardAsItIs(t *testing.T) {
	yard := []client.Object{theShipyard()}
	const (
		snapshot = "its snapshot is not Shipyard yard as it is: create the run again"
		more     = "it has requesters of other runs, or no version, or one that it does not deploy: create the run again"
		context  = "its context is that of another delivery, or absent: create the run again"
	)
	newer, named, only, strict := theShipyard(), theShipyard(), theShipyard(), theShipyard()
	newer.Generation++
	only.Spec.Services = []string{"api"}
	strict.Spec.Stages[1].Requires = []shipper.StageRequirement{{Stage: "staging"}}
	required := func(run *shipper.SequenceRun) {
		run.Spec.Stage, run.Spec.Snapshot = "production", shipyard.Snapshot(strict)
	}
	other := func(run *shipper.SequenceRun) { run.Spec.Context = "other" }
	named.Spec.ServiceAccountName = "deployer"
	unversioned := func(run *shipper.SequenceRun) { run.Spec.Version = shipper.RunVersion{} }
	for sentence, tc := range map[string]forgedCase{
		"it has the snapshot and a version": {runOf("first"), yard, ""},
		"a user has held it":                {runOf("first", func(run *shipper.SequenceRun) { run.Spec.Hold = "lunch" }), yard, ""},
		"it deploys nothing and has no version": {
			runOf("first", unversioned, func(run *shipper.SequenceRun) { run.Spec.Sequence = "sign" }), yard, "",
		},
		"it deploys nothing and has a version": {runOf("first", func(run *shipper.SequenceRun) { run.Spec.Sequence = "sign" }), yard, more},
		"it deploys and has no version":        {runOf("first", unversioned), yard, more},
		"it deploys a chart without a version": {
			runOf("first", func(run *shipper.SequenceRun) { run.Spec.Version.Version = "" }), yard, more,
		},
		"it has no snapshot": {
			runOf("first", func(run *shipper.SequenceRun) { run.Spec.Snapshot = nil }), yard,
			"it was created while Shipper's webhook was not called: create it again",
		},
		"the Shipyard has another history since":  {runOf("first"), []client.Object{newer}, ""},
		"the Shipyard is gone":                    {runOf("first"), nil, snapshot},
		"the Shipyard has another ServiceAccount": {runOf("first"), []client.Object{named}, snapshot},
		"its snapshot is of a Shipyard that had the name before": {
			runOf("first", func(run *shipper.SequenceRun) { run.Spec.Snapshot.UID = "old" }), yard, snapshot,
		},
		"its snapshot has another ServiceAccount": {
			runOf("first", func(run *shipper.SequenceRun) { run.Spec.Snapshot.ServiceAccountName = "admin" }), yard, snapshot,
		},
		"its snapshot has no approval": {runOf("first", func(run *shipper.SequenceRun) {
			run.Spec.Snapshot.Stages[0].Sequences[0].Tasks = run.Spec.Snapshot.Stages[0].Sequences[0].Tasks[1:]
		}), yard, snapshot},
		"it has earlier requesters": {
			runOf("first", func(run *shipper.SequenceRun) { run.Spec.EarlierRequesters = []string{"eve"} }), yard, more,
		},
		"it has the context of another delivery": {runOf("first"), append([]client.Object{runOf("other")}, yard...), context},
		"a run that came later has its context": {runOf("first"), append([]client.Object{
			runOf("other", func(run *shipper.SequenceRun) { run.CreationTimestamp = after(-60) }),
		}, yard...), ""},
		"the stage has too many runs": {runOf("first"), append(many(shipyard.MaxUnfinished), yard...),
			"200 runs of stage staging of shipyard yard are not finished: wait, or abort some"},
		"it has no context": {runOf("first", func(run *shipper.SequenceRun) { run.Spec.Context = "" }), yard, context},
		"it is of a service that the Shipyard does not have": {
			runOf("first"), []client.Object{only}, `spec.service: Invalid value: "web": is no service of the shipyard; there are: api`,
		},
		"it has more data than runs may": {
			runOf("first", func(run *shipper.SequenceRun) {
				run.Spec.Data = shipper.FreeForm{"a": strings.Repeat("x", shipyard.MaxData)}
			}),
			yard, "spec.data: Forbidden: 257 KiB of 256: put it into a store and pass its URL",
		},
		"its version lacks what its stage requires": {
			runOf("first", required), []client.Object{strict}, "version 1.2.3 has not passed in stage staging; no version has",
		},
		"its version has what its stage requires": {
			runOf("first", required), []client.Object{strict, runOf("before", other, ended(shipper.ResultPass))}, "",
		},
		"it skips what its stage requires": {
			runOf("first", required, func(run *shipper.SequenceRun) { run.Spec.SkipRequires = &shipper.SkipRequires{Reason: "haste"} }),
			[]client.Object{strict}, "",
		},
	} {
		t.Run(sentence, tc.check)
	}
}

func TestARunIsJudgedByWhatItsStageRequiresOnceTheCacheMustHaveIt(t *testing.T) {
	strict := theShipyard()
	strict.Spec.Stages[1].Requires = []shipper.StageRequirement{{Stage: "staging"}}
	young := runOf("first", func(run *shipper.SequenceRun) {
		run.Spec.Stage, run.Spec.Snapshot, run.CreationTimestamp = "production", shipyard.Snapshot(strict), after(-9)
	})
	why, err := isForged(t, newReconciler(t, interceptor.Funcs{}, strict), young)
	if why != "" || err == nil {
		t.Errorf("%q, %v; want an error, for which it is tried again", why, err)
	}
}

func TestARunIsNotForgedOnlyBecauseTheAPIServerCannotBeRead(t *testing.T) {
	down := interceptor.Funcs{Get: func(
		context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption,
	) error {
		return errors.New("it is down")
	}}
	const ofRun = "reading SequenceRun shop/first: it is down"
	for sentence, tc := range map[string]forgedCase{
		"a run of a user": {runOf("first"), nil, "reading Shipyard shop/yard: it is down"},
		"a retry":         {again(), nil, ofRun},
		"a follow-up":     {followUp(), nil, ofRun},
	} {
		why, err := isForged(t, newReconciler(t, down), tc.run)
		if diff := cmp.Diff([]string{"", tc.want}, []string{why, message(err)}); diff != "" {
			t.Errorf("%s: -want +got:\n%s", sentence, diff)
		}
	}
}
