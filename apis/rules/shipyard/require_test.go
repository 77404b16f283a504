// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// requiring has runs of a service: stage production requires that a version has passed in staging an hour ago.
func requiring(t *testing.T) (run func(stage, sequence, version string) *shipper.SequenceRun) {
	t.Helper()
	of := &shipper.Shipyard{Spec: *spec(t, `
stages:
- {name: staging, sequences: [{name: delivery, tasks: [{name: deployment}]}, {name: back, tasks: [{name: rollback}]}]}
- {name: production, requires: [{stage: staging, soak: 1h}], sequences: [{name: delivery, tasks: [{name: deployment}]}]}
`)}
	return func(stage, sequence, version string) *shipper.SequenceRun {
		out := &shipper.SequenceRun{Spec: shipper.SequenceRunSpec{Stage: stage, Sequence: sequence, Service: "web"}}
		out.Status.Resolved = Resolved(Snapshot(of), stage, sequence)
		out.Status.Resolved.Version = shipper.RunVersion{Version: version, Digest: "d"}
		return out
	}
}

// TestAPassCountsUntilItsVersionFailsOrIsTakenBack has a version that passed two hours ago, and a run of its stage after it.
func TestAPassCountsUntilItsVersionFailsOrIsTakenBack(t *testing.T) {
	run := requiring(t)
	ended := func(r *shipper.SequenceRun, name string, result shipper.Result, ago time.Duration, release string) *shipper.SequenceRun {
		at := metav1.NewTime(start.Add(-ago))
		r.Name, r.Status.Result, r.Status.StartTime, r.Status.FinishTime = name, result, &at, &at
		r.Status.Conditions = []shipper.Condition{{Type: shipper.RunFinished, Status: "True"}}
		r.Status.Tasks = []shipper.TaskStatus{{Name: r.Status.Resolved.Sequence.Tasks[0].Name, Release: release}}
		return r
	}
	deployed := func(name, version string, result shipper.Result, ago time.Duration, release string) *shipper.SequenceRun {
		return ended(run("staging", "delivery", version), name, result, ago, release)
	}
	takesBack := func(release string) *shipper.SequenceRun {
		return ended(run("staging", "back", ""), "back", shipper.ResultPass, 90*time.Minute, release)
	}
	tookBack := func(ago time.Duration) *shipper.SequenceRun {
		out := takesBack("shop/web-1")
		out.Status.Tasks[0].TriggerTime = &metav1.Time{Time: start.Add(-ago)}
		return out
	}
	underWay := takesBack("shop/web-1")
	underWay.Status.FinishTime, underWay.Status.Conditions, underWay.Status.Result = nil, nil, ""
	unbegun := deployed("x", "1.1.0", shipper.ResultFail, time.Hour, "")
	unbegun.Status.StartTime = nil
	unresolved := deployed("x", "1.1.0", shipper.ResultFail, time.Hour, "")
	unresolved.Status.Resolved.Version.Digest = ""
	another := deployed("x", "1.1.0", shipper.ResultFail, time.Hour, "")
	another.Status.Resolved.Version.Digest = "e"
	elsewhere := deployed("x", "1.1.0", shipper.ResultFail, time.Hour, "")
	elsewhere.Spec.Service = "shop"
	production := ended(run("production", "delivery", "1.1.0"), "x", shipper.ResultFail, time.Hour, "")
	for sentence, tc := range map[string]struct {
		after []*shipper.SequenceRun
		want  string
	}{
		"nothing": {nil, ""},
		"its version fails": {
			[]*shipper.SequenceRun{deployed("x", "1.1.0", shipper.ResultFail, time.Hour, "")},
			"version 1.1.0 has not passed in stage staging since run x failed; no version has",
		},
		"it fails in the same second": {
			[]*shipper.SequenceRun{deployed("x", "1.1.0", shipper.ResultFail, 2*time.Hour, "")},
			"version 1.1.0 has not passed in stage staging since run x failed; no version has",
		},
		"its version fails, resolved without its repository": {
			[]*shipper.SequenceRun{unresolved}, "version 1.1.0 has not passed in stage staging since run x failed; no version has",
		},
		"another archive of its version fails": {[]*shipper.SequenceRun{another}, ""},
		"it is taken back": {
			[]*shipper.SequenceRun{takesBack("shop/web-1")},
			"version 1.1.0 has not passed in stage staging since run back took it back; no version has",
		},
		"it is being taken back": {
			[]*shipper.SequenceRun{underWay}, "version 1.1.0 has not passed in stage staging since run back took it back; no version has",
		},
		"it is taken back in the second of its deployment": {
			[]*shipper.SequenceRun{tookBack(2 * time.Hour)},
			"version 1.1.0 has not passed in stage staging since run back took it back; no version has",
		},
		"a Release of its name was aborted before": {[]*shipper.SequenceRun{tookBack(3 * time.Hour)}, ""},
		"it fails, and passes again": {
			[]*shipper.SequenceRun{
				deployed("x", "1.1.0", shipper.ResultFail, time.Hour, ""), deployed("y", "1.1.0", shipper.ResultPass, 30*time.Minute, "shop/web-2"),
			},
			"version 1.1.0 passed in stage staging at 2026-03-01T11:30:00Z and has to soak for 1h: until 2026-03-01T12:30:00Z",
		},
		"it had failed before":                {[]*shipper.SequenceRun{deployed("x", "1.1.0", shipper.ResultFail, 3*time.Hour, "")}, ""},
		"a run of it is aborted in the queue": {[]*shipper.SequenceRun{unbegun}, ""},
		"another version passes":              {[]*shipper.SequenceRun{deployed("x", "1.2.0", shipper.ResultPass, time.Hour, "shop/web-2")}, ""},
		"another version fails":               {[]*shipper.SequenceRun{deployed("x", "1.2.0", shipper.ResultFail, time.Hour, "shop/web-2")}, ""},
		"another Release is taken back":       {[]*shipper.SequenceRun{takesBack("shop/web-2")}, ""},
		"nothing is taken back":               {[]*shipper.SequenceRun{takesBack("")}, ""},
		"another service fails":               {[]*shipper.SequenceRun{elsewhere}, ""},
		"it fails in another stage":           {[]*shipper.SequenceRun{production}, ""},
	} {
		passed := deployed("passed", "1.1.0", shipper.ResultPass, 2*time.Hour, "shop/web-1")
		passed.Status.Tasks[0].TriggerTime = passed.Status.StartTime
		for _, known := range [][]*shipper.SequenceRun{
			append(slices.Clone(tc.after), passed), append([]*shipper.SequenceRun{passed}, tc.after...),
		} {
			got, _ := Unmet(run("production", "delivery", "1.1.0"), known, start)
			if got := strings.Join(got, "; "); got != tc.want {
				t.Errorf("%s: %q, want %q", sentence, got, tc.want)
			}
		}
	}
}

// Without it, the pass would count again once the run that ended it is pruned.
func TestHistoryKeepsTheRunThatEndedAPass(t *testing.T) {
	run, limit := requiring(t), int32(1)
	var all []*shipper.SequenceRun
	for i, result := range []shipper.Result{shipper.ResultPass, shipper.ResultFail, shipper.ResultFail, shipper.ResultFail} {
		version := "1.1.0"
		if i > 1 {
			version = "1.2.0"
		}
		one := run("staging", "delivery", version)
		at := metav1.NewTime(start.Add(time.Duration(i) * time.Minute))
		one.Name, one.Status.Result, one.Status.StartTime, one.Status.FinishTime = string(rune('a'+i)), result, &at, &at
		one.Status.Conditions = []shipper.Condition{{Type: shipper.RunFinished, Status: "True"}}
		all = append(all, one)
	}
	for range 2 { // the second time without the surplus
		surplus, _ := Surplus(all, nil, &shipper.RunHistory{Limit: &limit}, start.Add(1000*time.Hour))
		all = slices.DeleteFunc(all, func(run *shipper.SequenceRun) bool { return slices.Contains(surplus, run) })
	}
	if len(all) != 2 || all[0].Name != "a" || all[1].Name != "b" {
		t.Errorf("%d runs are kept", len(all))
	}
}

// TestHistoryKeepsTheRunThatEndedAPassInUse has a pass that only a retry under way keeps: a newer one of its sequence is there.
func TestHistoryKeepsTheRunThatEndedAPassInUse(t *testing.T) {
	run, limit := requiring(t), int32(1)
	var all []*shipper.SequenceRun
	for i, version := range []string{"1.1.0", "1.1.0", "1.2.0", "1.3.0"} {
		one, result := run("staging", "delivery", version), shipper.ResultPass
		if i == 1 {
			result = shipper.ResultFail
		}
		at := metav1.NewTime(start.Add(time.Duration(i) * time.Minute))
		one.Name, one.Status.Result, one.Status.StartTime, one.Status.FinishTime = string(rune('a'+i)), result, &at, &at
		one.Status.Conditions = []shipper.Condition{{Type: shipper.RunFinished, Status: "True"}}
		all = append(all, one)
	}
	surplus, _ := Surplus(all, map[string]bool{"a": true}, &shipper.RunHistory{Limit: &limit}, start.Add(time.Hour))
	if len(surplus) != 1 || surplus[0].Name != "c" {
		t.Errorf("%d runs are surplus, want run c alone", len(surplus))
	}
}
