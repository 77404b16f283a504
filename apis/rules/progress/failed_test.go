// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/progress"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// late is a step that lacks capacity in two clusters that fail when the deadline ends.
func late(over string) strategy.StepState {
	s := lacking
	s.Failed, s.Late, s.OverBudget = []string{"eu-0"}, []string{"eu-2", "eu-3"}, over
	return s
}

func TestClustersFailWithinTheBudget(t *testing.T) {
	const budget = "2 clusters (eu-2, eu-3) failed, and maxFailures is 1"
	within := notFailed
	within.Message = "failed within maxFailures: 3 clusters (eu-0, eu-2, eu-3)"
	before := notFailed
	before.Message = "failed within maxFailures: 1 cluster (eu-0)"
	over := isFailed
	over.Message = said + "; " + budget
	more := with(awaited(1), func(p *shipper.ReleaseProgress) { p.DeadlineTime = new(at(10 * time.Minute)) })
	beyond := failure(1, shipper.OnFailureHold)
	beyond.Failure.Message += "; " + budget
	for sentence, tc := range map[string]struct {
		step     strategy.StepState
		after    time.Duration
		expected progress.Decision
	}{
		"before the deadline none does": {late(""), 4 * time.Minute, progress.Decision{
			Progress: awaited(1), Conditions: []shipper.Condition{advancing(yes, shipper.AdvancingMoving, "capacity is awaited"), before},
			Again: time.Minute,
		}},
		"then they do, and the clock begins again": {late(""), 5 * time.Minute, progress.Decision{
			Progress: more, Conditions: []shipper.Condition{advancing(yes, shipper.AdvancingMoving, "capacity is awaited"), within},
			Again: 5 * time.Minute, Failed: []string{"eu-0", "eu-2", "eu-3"},
		}},
		"more than the budget fail the rollout": {late(budget), 5 * time.Minute, progress.Decision{
			Progress:   with(failure(1, shipper.OnFailureHold), func(p *shipper.ReleaseProgress) { p.Failure.Message += "; " + budget }),
			Conditions: []shipper.Condition{advancing(no, shipper.AdvancingFailed, over.Message), over},
		}},
	} {
		is := progress.Observed{Release: rel(failing(""), 1, awaited(1)), Step: tc.step, Since: at(-time.Hour).Time}
		got := progress.Decide(is, at(tc.after).Time)
		if diff := cmp.Diff(tc.expected, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}

func TestTheBudgetIsSaidBesideALongMessage(t *testing.T) {
	step := late("2 clusters (eu-2, eu-3) failed, and maxFailures is 1")
	step.Lacking = []strategy.Lack{{Cluster: "eu-2", Reachable: true, Message: strings.Repeat("crashes ", 500)}}
	got := progress.Decide(progress.Observed{Release: rel(failing(""), 1, awaited(1)), Step: step}, at(5*time.Minute).Time)
	if f := got.Progress.Failure; f == nil || len([]rune(f.Message)) > 1024 || !strings.HasSuffix(f.Message, "…; "+step.OverBudget) {
		t.Errorf("%+v", f)
	}
}

func TestAnAchievedReleaseAwaitsItsFailedClusters(t *testing.T) {
	s := failing("")
	r := achieved(rel(s, s.LastStep(), soaking(s.LastStep())))
	step := done
	step.Lagging = "1 cluster (eu-0) failed"
	for text, want := range map[string]shipper.Condition{
		"":           advancing(no, shipper.AdvancingComplete, ""),
		step.Lagging: advancing(no, shipper.AdvancingAwaitingFailedClusters, step.Lagging),
	} {
		step.Lagging = text
		got := progress.Decide(progress.Observed{Release: r, Step: step}, at(time.Hour).Time)
		if diff := cmp.Diff([]shipper.Condition{want, notFailed}, got.Conditions); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
