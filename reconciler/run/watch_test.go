// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

type edit = func(*shipper.SequenceRun)

func unresolved(run *shipper.SequenceRun) { run.Status.Resolved = nil }

func hold(run *shipper.SequenceRun)  { run.Spec.Hold, run.Generation = "lunch", run.Generation+1 }
func abort(run *shipper.SequenceRun) { run.Spec.Abort, run.Generation = "wrong", run.Generation+2 }

func condition(kind string, status corev1.ConditionStatus, reason string) edit {
	return func(run *shipper.SequenceRun) {
		run.Status.Conditions = shipper.SetCondition(run.Status.Conditions,
			shipper.Condition{Type: kind, Status: status, Reason: reason}, after(0))
	}
}

func takesBack(run *shipper.SequenceRun) {
	run.Status.Tasks = []shipper.TaskStatus{{Name: shipyard.TaskRollback, State: shipper.TaskTriggered, Release: "shop/web-1"}}
}

func TestOnlyWhatOtherRunsReadOfARunBearsOnThem(t *testing.T) {
	begins, passes := []edit{started}, []edit{ended(shipper.ResultPass)}
	for sentence, tc := range map[string]struct {
		before []edit
		change edit
		want   bool
	}{
		"nothing changes: the cache is listed again": {nil, func(*shipper.SequenceRun) {}, false},
		"it is resolved":                         {[]edit{unresolved}, func(run *shipper.SequenceRun) { *run = *runOf("first") }, true},
		"it is held":                             {nil, hold, true},
		"it is held under way":                   {begins, hold, true},
		"it is aborted":                          {begins, abort, true},
		"it begins":                              {nil, started, true},
		"it passes":                              {begins, ended(shipper.ResultPass), true},
		"it ends before it has begun":            {nil, condition(shipper.RunFinished, "True", shipper.RunSuperseded), true},
		"it is replaced by one of the same name": {nil, func(run *shipper.SequenceRun) { run.UID = "new" }, true},
		"its status is restored from before it began": {begins, func(run *shipper.SequenceRun) { run.Status.StartTime = nil }, true},
		"its status is restored with another result":  {passes, func(run *shipper.SequenceRun) { run.Status.Result = shipper.ResultFail }, true},
		"its status is restored with another end":     {passes, finishedAt(-60), true},
		"it is queued":             {nil, condition(shipper.RunFinished, "False", shipper.RunQueued), false},
		"it is behind another one": {nil, func(run *shipper.SequenceRun) { run.Status.Behind = "x" }, false},
		"it is seen":               {nil, func(run *shipper.SequenceRun) { run.Status.ObservedGeneration = 1 }, false},
		"it goes on":               {begins, condition(shipper.RunFinished, "False", shipper.RunRunning), false},
		"it is blocked":            {begins, condition(shipper.RunBlocked, "True", shipper.RolloutsBlocked), false},
		"its clocks stop":          {begins, func(run *shipper.SequenceRun) { run.Status.PausedSince = ptr.To(after(0)) }, false},
		"its clocks have stood":    {begins, func(run *shipper.SequenceRun) { run.Status.PausedSeconds = 60 }, false},
		"its data grow":            {begins, func(run *shipper.SequenceRun) { run.Status.Data = shipper.FreeForm{"a": "b"} }, false},
		"one of its follow-ups is created": {
			passes, func(run *shipper.SequenceRun) { run.Status.Triggered[0].CreateTime = ptr.To(after(0)) }, false,
		},
		"one of its follow-ups is refused": {passes, func(run *shipper.SequenceRun) { run.Status.Triggered[0].Refused = true }, false},
		"it is labelled":                   {begins, func(run *shipper.SequenceRun) { run.Labels = map[string]string{"a": "b"} }, false},
		"it takes back":                    {begins, takesBack, true},
		"a task of it begins": {begins, func(run *shipper.SequenceRun) {
			run.Status.Task, run.Status.Tasks = "deployment", []shipper.TaskStatus{{Name: "deployment", State: shipper.TaskTriggered}}
		}, false},
	} {
		was := runOf("first", tc.before...)
		is := was.DeepCopy()
		tc.change(is)
		if diff := cmp.Diff(tc.want, bearsOnOthers(was, is)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", sentence, diff)
		}
	}
}

// others are what the rules decide about other runs of the Shipyard, as JSON, where they read of a run.
func others(t *testing.T, run *shipper.SequenceRun) string {
	t.Helper()
	var unfinished []*shipper.SequenceRun
	if !shipyard.IsFinished(run) {
		unfinished = append(unfinished, run)
	}
	snapshot := func(other *shipper.SequenceRun) {
		other.Spec.Sequence = run.Spec.Sequence
		resolves(other, snapshotOf(run))
	}
	created := func(seconds int) edit {
		return func(other *shipper.SequenceRun) { other.CreationTimestamp = after(seconds) }
	}
	var out []any
	for _, other := range []*shipper.SequenceRun{
		runOf("newer", snapshot, created(-1800)), runOf("older", snapshot, created(-7200)), runOf("begun", snapshot, started),
		runOf("other-service", snapshot, func(other *shipper.SequenceRun) { other.Spec.Service = "shop" }),
	} {
		out = append(out, shipyard.Plan(shipyard.Observed{Run: other, Others: unfinished, Now: noon}))
	}
	waits := runOf("waits", requires("1h"), ended(shipper.ResultPass))
	why, again := shipyard.Awaits(waits, snapshotOf(waits), &waits.Status.Triggered[0], []*shipper.SequenceRun{run}, noon)
	raw, err := json.Marshal(append(out, why, again))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// sequence lets a run be of a sequence that does something if the stage is busy. One run of the stage goes at a time.
func sequence(tasks string, busy shipper.WhenBusy) edit {
	return func(run *shipper.SequenceRun) {
		of := snapshotOf(run).DeepCopy()
		stage := &of.Stages[0]
		stage.MaxConcurrency = ptr.To(int32(1))
		stage.Sequences = append(stage.Sequences, shipper.Sequence{
			Name: "special", WhenBusy: busy, Tasks: []shipper.Task{{Name: tasks}, {Name: "deployment"}},
		})
		run.Spec.Sequence = "special"
		resolves(run, of)
	}
}

// The states are all that these edits make of a run, for each way to be in line.
func TestAChangeThatBearsOnNoOtherRunChangesNoDecisionAboutOthers(t *testing.T) {
	edits := []edit{
		hold, abort, started, condition(shipper.RunFinished, "False", shipper.RunRunning), ended(shipper.ResultFail),
		func(run *shipper.SequenceRun) { run.Status.Result = shipper.ResultPass }, finishedAt(-1800),
		func(run *shipper.SequenceRun) { run.Status.PausedSince, run.Status.Behind = ptr.To(after(-10)), "x" },
		func(run *shipper.SequenceRun) {
			run.Status.Data, run.Status.Tasks = shipper.FreeForm{"a": "b"}, []shipper.TaskStatus{{Name: "approval", State: shipper.TaskWaiting}}
		},
	}
	type state struct {
		run    *shipper.SequenceRun
		others string
	}
	for name, kind := range map[string]edit{
		"queued": sequence("approval", ""), "supersedes": sequence("approval", shipper.WhenBusySupersede),
		"breaks in": sequence("approval", shipper.WhenBusyPreempt), "takes back": sequence("rollback", ""),
	} {
		var states []state
		decisions := map[string]bool{}
		for bits := range 1 << len(edits) {
			run := runOf("first", kind)
			for i, change := range edits {
				if bits&(1<<i) != 0 {
					change(run)
				}
			}
			states = append(states, state{run, others(t, run)})
			decisions[states[bits].others] = true
		}
		for _, was := range states {
			for _, is := range states {
				if was.others != is.others && !bearsOnOthers(was.run, is.run) {
					t.Fatalf("%s: a change that does not bear on others changes decisions about them; the run and the decisions, -was +is:\n%s\n%s",
						name, cmp.Diff(was.run, is.run), cmp.Diff(was.others, is.others))
				}
			}
		}
		if least := 5; len(decisions) < least { // queued, begun, held or failed, passed, passed earlier
			t.Errorf("%s: the states lead to %d decisions: fewer than %d show little", name, len(decisions), least)
		}
	}
}

func TestARunWakesTheRunsThatItBearsOn(t *testing.T) {
	bounded := with(func(of *shipper.ShipyardSnapshot) { of.Stages[0].MaxConcurrency = ptr.To(int32(1)) })
	service := func(name string) edit { return func(run *shipper.SequenceRun) { run.Spec.Service = name } }
	production := func(run *shipper.SequenceRun) { run.Spec.Stage = "production" }
	elsewhere := func(run *shipper.SequenceRun) { run.Namespace = "other" }
	objects := []client.Object{
		runOf("queued"), runOf("begun", started), runOf("other-service", service("shop")),
		runOf("bounded", service("shop"), bounded), runOf("bounded-begun", service("shop"), bounded, started),
		runOf("other-stage", production), runOf("other-namespace", elsewhere),
		runOf("waits", requires("1h"), ended(shipper.ResultPass)), runOf("waits-of-other-service", service("shop"), ended(shipper.ResultPass)),
		runOf("done", ended(shipper.ResultFail)),
	}
	r := newReconciler(t, interceptor.Funcs{}, objects...)
	for sentence, tc := range map[string]struct {
		run  *shipper.SequenceRun
		want []string
	}{
		"one that is queued":  {runOf("first"), []string{"begun", "bounded", "queued"}},
		"one that begins":     {runOf("first", started), []string{"bounded", "queued"}},
		"one that fails":      {runOf("first", ended(shipper.ResultFail)), []string{"bounded", "queued", "waits"}},
		"one that takes back": {runOf("first", started, takesBack), []string{"bounded", "queued", "waits"}},
		"one of another version that passes": {
			runOf("first", func(run *shipper.SequenceRun) { run.Status.Resolved.Version.Version = "2.0.0" }, ended(shipper.ResultPass)),
			[]string{"bounded", "queued"},
		},
		"one that passes":       {runOf("first", ended(shipper.ResultPass)), []string{"bounded", "queued", "waits"}},
		"one without a service": {runOf("first", service("")), []string{"bounded"}},
		"one that is not resolved": {
			runOf("first", func(run *shipper.SequenceRun) { run.Status.Resolved = nil }), []string{"begun", "bounded", "queued"},
		},
	} {
		var got []string
		for _, request := range r.beside(t.Context(), tc.run) {
			got = append(got, request.Name)
		}
		slices.Sort(got)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}
