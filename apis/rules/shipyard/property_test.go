// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestRunsEndAndDoNoTaskTwice decides about random runs, with random ends of tasks, holds, aborts, blocks and time: a task that ended is
// not done again, a finished run does not change, one run of a service is under way at most, and every run ends.
func TestRunsEndAndDoNoTaskTwice(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		s := begin(t, randomTasks(random)...)
		s.stages[0].Sequences[0].WhenBusy = []shipper.WhenBusy{"", shipper.WhenBusySupersede, shipper.WhenBusyPreempt}[random.IntN(3)]
		s.stages[0].Sequences[0].Timeout = "20m"
		ended := map[string]bool{}
		for step := range 120 {
			if len(s.runs) < 6 && random.IntN(10) == 0 {
				s.creates(fmt.Sprint("run-", len(s.runs)), []string{"delivery", "rollback"}[random.IntN(2)])
			}
			s.after(time.Duration(random.IntN(120)) * time.Second)
			for _, run := range s.runs {
				meddle(random, run, step)
				before := run.DeepCopy()
				d := Plan(Observed{Run: run, Others: s.runs, Outcome: randomOutcome(random, run), Snapshot: s.of(), Now: s.now})
				if IsFinished(before) && !cmp.Equal(before.Status, d.Status) {
					t.Fatalf("seed %d: %s changed after its end", seed, run.Name)
				}
				run.Status = d.Status
				checkRun(t, seed, run, d, ended)
			}
			underWay := 0
			for _, run := range s.runs {
				if run.Status.StartTime != nil && !IsFinished(run) {
					underWay++
				}
			}
			if underWay > 1 {
				t.Fatalf("seed %d: %d runs are under way", seed, underWay)
			}
		}
		s.ends(seed)
	}
}

// checkRun fails if a task of a run is done after it ended.
func checkRun(t *testing.T, seed uint64, run *shipper.SequenceRun, d Decision, ended map[string]bool) {
	t.Helper()
	if d.Do != nil && ended[d.Do.EventID] {
		t.Fatalf("seed %d: %s of %s is done again", seed, NameOf(d.Do), run.Name)
	}
	if d.Do != nil && IsFinished(run) {
		t.Fatalf("seed %d: %s of %s is done after the end of the run", seed, NameOf(d.Do), run.Name)
	}
	for i, task := range run.Status.Tasks {
		if task.FinishTime != nil {
			ended[task.EventID] = true
		} else if task.State != shipper.TaskSkipped && i != len(run.Status.Tasks)-1 {
			t.Fatalf("seed %d: task %d of %s is under way beside a later one", seed, i, run.Name)
		}
	}
}

// ends lets all runs go on undisturbed, and fails if one does not end.
func (s *story) ends(seed uint64) {
	s.t.Helper()
	for range 300 {
		s.after(2 * time.Hour) // longer than what an approval waits, in all
		left := 0
		for _, run := range s.runs {
			run.Spec.Hold = ""
			if !IsFinished(run) {
				left++
				run.Status = Plan(Observed{Run: run, Others: s.runs, Snapshot: s.of(), Now: s.now}).Status
			}
		}
		if left == 0 {
			return
		}
	}
	s.t.Errorf("seed %d: a run does not end", seed)
}

func randomTasks(random *rand.Rand) []shipper.Task {
	names := []string{"deployment", "test", "approval", "release"}
	out := make([]shipper.Task, 1+random.IntN(6))
	for i := range out {
		out[i].Name = names[random.IntN(len(names))]
		out[i].When = []shipper.TaskCondition{"", shipper.TaskAlways, shipper.TaskWhenFailed}[random.IntN(3)]
		if random.IntN(4) == 0 {
			out[i].TriggeredAfter = "1m"
		}
	}
	return out
}

// meddle is what users do.
func meddle(random *rand.Rand, run *shipper.SequenceRun, step int) {
	switch random.IntN(40) {
	case 0:
		run.Spec.Hold = "wait"
	case 1, 2:
		run.Spec.Hold = ""
	case 3:
		if step > 60 {
			run.Spec.Abort = "enough"
		}
	}
}

func randomOutcome(random *rand.Rand, run *shipper.SequenceRun) *Outcome {
	if n := len(run.Status.Tasks); n == 0 || run.Status.Tasks[n-1].State != shipper.TaskTriggered {
		return nil
	}
	switch random.IntN(8) {
	case 0:
		return passed
	case 1:
		return broken
	case 2:
		return &Outcome{Blocked: "rollouts blocked"}
	case 3:
		return waiting
	}
	return nil
}
