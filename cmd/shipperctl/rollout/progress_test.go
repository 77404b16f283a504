// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestProgressIsShown(t *testing.T) {
	time.Local = time.UTC
	two := int32(2)
	for sentence, tc := range map[string]struct {
		is            *progressView
		screen, lines string
	}{
		"a step that soaks": {
			is:     &progressView{State: shipper.AdvancingSoaking, NextStep: &two, NextTime: now.Add(3 * time.Minute)},
			screen: "advances   by itself at 13:03:00, in 3m, to step 2 (full on)\n",
			lines:  "advancing: Soaking\nadvances: by itself at 13:03:00, in 3m, to step 2 (full on)\n",
		},
		"a step that a user holds": {
			is: &progressView{
				State: shipper.AdvancingHeldByUser, NextStep: &two, NextTime: now.Add(-time.Minute), Hold: "lunch", HeldBy: "ann@example.com",
			},
			screen: "advances   to step 2 (full on) when nothing holds it; it is due at 12:59:00\nheld       lunch (ann@example.com)\n",
			lines: "advancing: HeldByUser\nadvances: to step 2 (full on) when nothing holds it; it is due at 12:59:00\n" +
				"held: lunch (ann@example.com)\n",
		},
		"a step with a deadline": {
			is:     &progressView{State: shipper.AdvancingMoving, Deadline: now.Add(2 * time.Minute)},
			screen: "advances   before 13:02:00, in 2m, or it fails, unless more pods are available by then\n",
			lines:  "advancing: Moving\nadvances: before 13:02:00, in 2m, or it fails, unless more pods are available by then\n",
		},
		"a wave that waits": {
			is:     &progressView{State: shipper.AdvancingAwaitingTime, WaitEnd: now.Add(40 * time.Minute)},
			screen: "advances   not before 13:40:00, in 40m: the wave waits\n",
			lines:  "advancing: AwaitingTime\nadvances: not before 13:40:00, in 40m: the wave waits\n",
		},
		"a wave that has waited": {
			is: &progressView{State: shipper.AdvancingAwaitingCommand, WaitEnd: now}, lines: "advancing: AwaitingCommand\n",
		},
		"a step that went back": {
			is: &progressView{
				State: shipper.AdvancingHeldAfterGoingBack, Failed: "step 1 was not ready", FailedAt: now.Add(-3 * time.Minute),
			},
			screen: "failed     3m ago: step 1 was not ready\n",
			lines:  "advancing: HeldAfterGoingBack\nfailed: 3m ago: step 1 was not ready\n",
		},
		"a rollout that has failed": {
			is: &progressView{
				State: shipper.AdvancingFailed, Message: "step 1 was not ready; is aborted", Failed: "step 1 was not ready",
				FailedAt: now,
			},
			screen: "failed     0s ago: step 1 was not ready; is aborted\n",
			lines:  "advancing: Failed\nfailed: 0s ago: step 1 was not ready; is aborted\n",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := canary()
			without, plain := p.Screen(200, now), p.Lines(now)
			p.Progress = tc.is
			if diff := cmp.Diff(tc.screen, added(without, p.Screen(200, now))); diff != "" {
				t.Errorf("screen (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.lines, added(plain, p.Lines(now))); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

// added are the lines of after that before does not have.
func added(before, after string) string {
	had, out := map[string]bool{}, ""
	for line := range strings.Lines(before) {
		had[line] = true
	}
	for line := range strings.Lines(after) {
		if !had[line] {
			out += line
		}
	}
	return out
}

func TestStepsSayHowTheyEnd(t *testing.T) {
	p := canary()
	p.Steps[0].Gate, p.Steps[1].After = true, "5m"
	if screen := p.Screen(120, now); !strings.Contains(screen, "steps      ✓ staging ‖ gate    ● canary 50/50 5m    · full on\n") {
		t.Error(screen)
	}
}

func TestViewHasProgress(t *testing.T) {
	o := exampleObserved()
	rel := o.releases[1]
	rel.Spec.Hold, rel.Annotations[shipper.ReleaseHeldByAnnotation] = "lunch", "ann"
	rel.Spec.Environment.Strategy.Steps[1].Gate = &shipper.StepGate{}
	rel.Status.Progress = &shipper.ReleaseProgress{
		Next: &shipper.ReleaseNextStep{Step: 2, Time: metav1.NewTime(now)}, DeadlineTime: &metav1.Time{Time: now},
	}
	rel.Status.Conditions = append(rel.Status.Conditions,
		shipper.Condition{Type: shipper.ReleaseAdvancing, Status: "False", Reason: shipper.AdvancingHeldByUser, Message: "held: lunch"},
		shipper.Condition{Type: shipper.ReleaseFailed, Status: "True", Message: "late", LastTransitionTime: metav1.NewTime(now)})
	two := int32(2)
	expected := &progressView{
		State: "HeldByUser", Message: "held: lunch", NextStep: &two, NextTime: now, Deadline: now, Hold: "lunch", HeldBy: "ann",
		Failed: "late", FailedAt: now,
	}
	p := viewOf(o, now)
	if diff := cmp.Diff(expected, p.Progress); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	if !p.Steps[1].Gate || !strings.Contains(strings.Join(p.Waiting, "\n"), "the end of a hold: shipperctl rollout resume") {
		t.Errorf("%+v waits for %v", p.Steps, p.Waiting)
	}
}
