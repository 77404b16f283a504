// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/state"
)

func runOf(shipyard, name string) *shipper.SequenceRun {
	return &shipper.SequenceRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       shipper.SequenceRunSpec{Shipyard: shipyard, Stage: "staging", Sequence: "delivery", Service: "web"},
	}
}

func TestRunsAreFoundByTheirShipyard(t *testing.T) {
	elsewhere := runOf("shop", "elsewhere")
	elsewhere.Namespace = "other"
	yard := &shipper.Shipyard{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop"}}
	f := ask.Know(t, ask.Grant(), yard, runOf("shop", "a"), runOf("shop", "b"), runOf("bakery", "c"), elsewhere).State
	runs, err := f.Runs(types.NamespacedName{Namespace: "shop", Name: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, run := range runs {
		names = append(names, run.Name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if got := f.Shipyards(); len(got) != 1 || got[0] != yard {
		t.Errorf("Shipyards: %v", got)
	}
}

// TestRunsAreReadLive: the cache has them without data, and may be behind.
func TestRunsAreReadLive(t *testing.T) {
	known := state.NewIndexers()
	if err := known.Runs.Add(runOf("shop", "there")); err != nil {
		t.Fatal(err)
	}
	server := &live{}
	f := state.New(known, server, "global")
	there, gone := types.NamespacedName{Namespace: "shop", Name: "there"}, types.NamespacedName{Namespace: "shop", Name: "gone"}
	if run, err := f.SequenceRunNow(t.Context(), there); err != nil || run == nil || run.Spec.Shipyard != "" {
		t.Errorf("run: got %v, %v; the API server has it without a Shipyard", run, err)
	}
	if yard, err := f.ShipyardNow(t.Context(), there); err != nil || yard == nil {
		t.Errorf("Shipyard: got %v, %v", yard, err)
	}
	if app, err := f.WholeApplicationNow(t.Context(), there); err != nil || app == nil {
		t.Errorf("Application: got %v, %v", app, err)
	}
	if run, err := f.SequenceRunNow(t.Context(), gone); err != nil || run != nil {
		t.Errorf("a run that is gone: got %v, %v", run, err)
	}
	if server.asked != 4 {
		t.Errorf("asked %d times, want 4", server.asked)
	}
}

// TestRunsAreKeptSmall: runs with data and a snapshot may have half a megabyte, and the webhook keeps 10,000.
func TestRunsAreKeptSmall(t *testing.T) {
	large := strings.Repeat("x", 100<<10)
	run := runOf("shop", "web-1")
	run.Spec.Data = shipper.FreeForm{"a": large}
	task := shipper.Task{Name: "deployment", Properties: shipper.FreeForm{"b": large}}
	resolved := &shipper.ResolvedRun{
		ServiceAccountName: "runner", Context: "c", Stage: shipper.Stage{Name: "staging", Application: "x"}, Data: run.Spec.Data,
		Sequence: shipper.Sequence{Name: "delivery", WhenBusy: shipper.WhenBusySupersede, Tasks: []shipper.Task{task, {Name: "test"}}},
	}
	now := metav1.NewTime(ask.Now)
	run.Status = shipper.SequenceRunStatus{
		Resolved: resolved, Result: shipper.ResultPass, FinishTime: &now, StartTime: &now, Message: large, Data: run.Spec.Data,
		Tasks: []shipper.TaskStatus{{Name: "deployment", Message: large}}, Conditions: []shipper.Condition{
			{Type: shipper.RunFinished, Status: "True", Reason: shipper.RunPassed, Message: large}, {Type: shipper.RunHasFailed, Status: "False"},
		},
	}
	want := runOf("shop", "web-1")
	want.Status = shipper.SequenceRunStatus{
		Resolved: &shipper.ResolvedRun{
			ServiceAccountName: "runner", Context: "c", Stage: shipper.Stage{Name: "staging"},
			Sequence: shipper.Sequence{
				Name: "delivery", WhenBusy: shipper.WhenBusySupersede, Tasks: []shipper.Task{{Name: "deployment"}, {Name: "test"}},
			},
		},
		Result: shipper.ResultPass, FinishTime: &now, StartTime: &now,
		Conditions: []shipper.Condition{{Type: shipper.RunFinished, Status: "True", Reason: shipper.RunPassed}},
	}
	got, err := state.Strip(run)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	if text, err := json.Marshal(got); err != nil || len(text) > 1<<10 {
		t.Errorf("it has %d bytes, %v", len(text), err)
	}
}

// pages answers lists of runs by pages of the size that is asked for.
type pages struct {
	client.Reader
	runs  int
	sizes []int64
}

func (p *pages) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	p.sizes = append(p.sizes, o.Limit)
	from, _ := strconv.Atoi(o.Continue)
	to := min(from+int(o.Limit), p.runs)
	out := list.(*shipper.SequenceRunList)
	for i := from; i < to; i++ {
		run := runOf("shop", fmt.Sprint(i))
		run.Spec.Data = shipper.FreeForm{"a": "x"}
		out.Items = append(out.Items, *run)
	}
	if to < p.runs {
		out.Continue = strconv.Itoa(to)
	}
	return nil
}

// TestWholeRunsAreReadAFewAtATime: a list of all of a stage may have hundreds of megabytes.
func TestWholeRunsAreReadAFewAtATime(t *testing.T) {
	server := &pages{runs: 25}
	runs, err := state.New(state.NewIndexers(), server, "global").
		RunsNow(t.Context(), types.NamespacedName{Namespace: "shop", Name: "shop"}, "staging", "web")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{10, 10, 10}, server.sizes); diff != "" {
		t.Errorf("sizes of the pages (-want +got):\n%s", diff)
	}
	if len(runs) != 25 || runs[24].Name != "24" || slices.ContainsFunc(runs, func(r *shipper.SequenceRun) bool { return r.Spec.Data != nil }) {
		t.Errorf("%d runs, the last %v", len(runs), runs[len(runs)-1])
	}
}
