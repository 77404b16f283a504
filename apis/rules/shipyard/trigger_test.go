// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// listened is a finished run, and the revision of its Shipyard.
type listened struct {
	*shipper.SequenceRun

	of *shipper.ShipyardSnapshot
}

func (l listened) followUps() []shipper.TriggeredRun { return FollowUps(l.DeepCopy(), l.of) }

// listening is a run of staging.delivery that ended, in a Shipyard whose stage production listens.
func listening(result shipper.Result, completion shipper.Completion, on ...shipper.Trigger) listened {
	run := &shipper.SequenceRun{Spec: shipper.SequenceRunSpec{Stage: "staging", Sequence: "delivery", Service: "web"}}
	run.UID = types.UID("1")
	of := &shipper.ShipyardSnapshot{Stages: []shipper.Stage{
		{Name: "staging", Sequences: []shipper.Sequence{
			{Name: "delivery", Tasks: []shipper.Task{{Name: "deployment"}, {Name: "test"}}}, {Name: "smoke", Tasks: []shipper.Task{{Name: "test"}}},
		}},
		{Name: "production", Sequences: []shipper.Sequence{{Name: "next", TriggeredOn: on, Tasks: []shipper.Task{{Name: "deployment"}}}}},
	}}
	does := Resolved(of, "staging", "delivery")
	run.Status = shipper.SequenceRunStatus{Resolved: does, Result: result, Completion: completion, Tasks: []shipper.TaskStatus{
		{Name: "deployment", State: shipper.TaskFinished, Result: shipper.ResultFail, Completion: shipper.CompletionErrored},
		{Name: "test", State: shipper.TaskFinished, Result: shipper.ResultPass, Completion: shipper.CompletionSucceeded},
		{Name: "smoke", State: shipper.TaskFinished, Result: shipper.ResultPass, Completion: shipper.CompletionSucceeded},
	}}
	return listened{run, of}
}

func TestEndsTriggerRuns(t *testing.T) {
	on := func(event string, match ...string) shipper.Trigger {
		out := shipper.Trigger{Event: event}
		if len(match) > 0 {
			out.Selector = &shipper.TriggerSelector{Match: map[string]string{}}
			for i := 0; i < len(match); i += 2 {
				out.Selector.Match[match[i]] = match[i+1]
			}
		}
		return out
	}
	const delivery = "staging.delivery.finished"
	pass, warning, fail := shipper.ResultPass, shipper.ResultWarning, shipper.ResultFail
	done, errored, aborted := shipper.CompletionSucceeded, shipper.CompletionErrored, shipper.CompletionAborted
	empty := on(delivery)
	empty.Selector = &shipper.TriggerSelector{}
	for sentence, tc := range map[string]struct {
		run  listened
		want bool
	}{
		"K9: a pass triggers":                                   {listening(pass, done, on(delivery)), true},
		"KS1: a warning does not":                               {listening(warning, done, on(delivery)), false},
		"a warning does if it is selected":                      {listening(warning, done, on(delivery, "result", "warning")), true},
		"K12: a failure does if it is selected":                 {listening(fail, done, on(delivery, "result", "fail")), true},
		"K12: a failure does not if a pass is selected":         {listening(fail, done, on(delivery, "result", "pass")), false},
		"KS13: a time-out is a failure":                         {listening(fail, errored, on(delivery, "result", "fail")), true},
		"KS13: an abort triggers nothing":                       {listening(fail, aborted, on(delivery, "result", "fail")), false},
		"KS13: an abort does if it is selected":                 {listening(fail, aborted, on(delivery, "status", "aborted")), true},
		"KS13: an abort triggers nothing by a task that passed": {listening(fail, aborted, on("staging.test.finished")), false},
		"KS2: an empty selector never matches":                  {listening(pass, done, empty), false},
		"KS2: an unknown key never matches":                     {listening(pass, done, on(delivery, "colour", "pass")), false},
		"all of match has to be equal":                          {listening(pass, done, on(delivery, "result", "pass", "service", "api")), false},
		"a service":                                             {listening(pass, done, on(delivery, "result", "pass", "service", "web")), true},
		"the result of a task":                                  {listening(fail, errored, on(delivery, "deployment.result", "fail")), true},
		"the status of a task":                                  {listening(fail, errored, on(delivery, "deployment.status", "errored")), true},
		"a task that was not done":                              {listening(fail, errored, on(delivery, "release.result", "fail")), false},
		"the end of a task, as in the specification's rollback": {
			listening(fail, done, on("staging.deployment.finished", "result", "fail")), true,
		},
		"the end of a task that passed":                      {listening(fail, done, on("staging.test.finished")), true},
		"the end of a task whose name is that of a sequence": {listening(pass, done, on("staging.smoke.finished")), false},
		"the end of another stage":                           {listening(pass, done, on("dev.delivery.finished")), false},
		"K8: an event of the users' own domain":              {listening(pass, done, on("problem.open")), false},
		"KS3: the same event twice triggers once":            {listening(pass, done, on(delivery), on(delivery)), true},
		"one of several events":                              {listening(pass, done, on("problem.open"), on(delivery)), true},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := tc.run.followUps()
			var want []shipper.TriggeredRun
			if tc.want {
				want = []shipper.TriggeredRun{{Name: "web-production-next-ce3b5", Stage: "production", Sequence: "next"}}
			}
			for i := range got {
				got[i].Event = ""
				if i < len(want) {
					want[i].Name = got[i].Name
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTheNameOfAFollowUpIsTheSameEachTime(t *testing.T) {
	run := listening(shipper.ResultPass, shipper.CompletionSucceeded, shipper.Trigger{Event: "staging.delivery.finished"})
	other := listened{run.DeepCopy(), run.of}
	other.UID = "2"
	first, again, another := run.followUps()[0].Name, run.followUps()[0].Name, other.followUps()[0].Name
	if first != again || first == another {
		t.Errorf("%s, %s and of another run %s", first, again, another)
	}
}

// FuzzTriggers checks of any event and selector that what follows is the same each time, that each run has a name that no user can take,
// and that an abort triggers nothing unless it is selected.
func FuzzTriggers(f *testing.F) {
	f.Add("staging.delivery.finished", "result", "pass", "web", uint8(0))
	f.Add("staging.test.finished", "test.status", "succeeded", "a.b", uint8(1))
	f.Add("..finished", "status", "aborted", "", uint8(2))
	f.Fuzz(func(t *testing.T, event, key, value, service string, how uint8) {
		results := []shipper.Result{shipper.ResultPass, shipper.ResultFail, shipper.ResultFail}
		completions := []shipper.Completion{shipper.CompletionSucceeded, shipper.CompletionErrored, shipper.CompletionAborted}
		how %= 3
		on := shipper.Trigger{Event: event}
		if key != "" {
			on.Selector = &shipper.TriggerSelector{Match: map[string]string{key: value}}
		}
		run := listening(results[how], completions[how], on, on)
		run.Spec.Service = service
		got := run.followUps()
		if diff := cmp.Diff(got, run.followUps()); diff != "" {
			t.Fatalf("the second time (-first +second):\n%s", diff)
		}
		for _, next := range got {
			if !IsNameOfFollowUp(next.Name) || len(next.Name) > MaxRunName || next.Stage != "production" || next.Event != event {
				t.Errorf("%+v", next)
			}
			if how == 2 && (key != "status" || value != "aborted") {
				t.Errorf("an abort triggers %+v by %s: %s", next, key, value)
			}
		}
		if len(got) > 1 {
			t.Errorf("one sequence is triggered %d times", len(got))
		}
	})
}
