// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/progress"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestAWaveDoesNotFailBeforeItBegins(t *testing.T) {
	waits := func(edits ...func(*shipper.Release)) *shipper.Release {
		s := waved(shipper.AdvanceAutomatic)
		s.ProgressDeadline, s.OnFailure = "5m", shipper.OnFailureRetreat
		s.Waves[1].BeforeTasks = &shipper.WaveTasks{Wait: "1h", Approvals: 1}
		r := inWave(s, 1, 0)
		r.Status.AchievedStep, r.Status.Progress.ConvergedTime = &shipper.AchievedStep{Step: 2}, nil
		for _, edit := range edits {
			edit(r)
		}
		return r
	}
	begins := strategy.StepState{
		Begun: true, Incumbent: true, Beginning: true, Awaited: "it waits", BeforeApprovals: &shipper.ReleaseApprovals{Required: 1},
	}
	awaiting := func(edit func(*strategy.StepState)) strategy.StepState {
		out := begins
		edit(&out)
		return out
	}
	type decided struct {
		Reason       string
		End, Entered *metav1.Time
		Again        time.Duration
		Remaining    string
		Deadline     *metav1.Time
		Before       *shipper.ReleaseApprovals
	}
	none, end := &shipper.ReleaseApprovals{Required: 1}, new(at(time.Hour))
	given := &shipper.ReleaseApprovals{Required: 1, Users: []string{"bob"}}
	for sentence, tc := range map[string]struct {
		release *shipper.Release
		step    strategy.StepState
		after   time.Duration
		want    decided
	}{
		"while it waits, with the time that is left": {
			waits(), awaiting(func(s *strategy.StepState) { s.Waiting = true }), 20 * time.Minute,
			decided{shipper.AdvancingAwaitingTime, end, nil, 40 * time.Minute, "5m0s", nil, none},
		},
		"while others have to approve it": {
			waits(), awaiting(func(s *strategy.StepState) { s.Approving = true }), 2 * time.Hour,
			decided{shipper.AdvancingAwaitingApproval, end, nil, 0, "5m0s", nil, none},
		},
		"while conditions are not True": {
			waits(), begins, 2 * time.Hour, decided{shipper.AdvancingChecking, end, nil, 0, "5m0s", nil, none},
		},
		"and has all its time once it begins": {
			waits(func(r *shipper.Release) { r.Status.Progress.DeadlineRemaining = "5m0s" }),
			strategy.StepState{Begun: true, Incumbent: true, Entered: true, BeforeApprovals: given}, 2 * time.Hour,
			decided{
				shipper.AdvancingMoving, nil, new(at(2 * time.Hour)), 5 * time.Minute, "", new(at(2*time.Hour + 5*time.Minute)), given,
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			d := progress.Decide(progress.Observed{Release: tc.release, Step: tc.step, Since: noon.Add(-time.Hour)}, noon.Add(tc.after))
			p := d.Progress
			got := decided{"", p.WaitEndTime, p.EnteredTime, d.Again, p.DeadlineRemaining, p.DeadlineTime, p.BeforeApprovals}
			if c := shipper.FindCondition(d.Conditions, shipper.ReleaseAdvancing); c != nil {
				got.Reason = c.Reason
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || d.Acts() || p.Failure != nil || p.ConvergedTime != nil {
				t.Errorf("acts %t (-want +got):\n%s", d.Acts(), diff)
			}
		})
	}
}

func TestAPositionWithoutItsBeforeApprovalsIsNotAchieved(t *testing.T) {
	for sentence, tc := range map[string]struct {
		edit func(*shipper.Release)
		want bool
	}{
		"by a status that lacks them": {func(*shipper.Release) {}, false},
		"by approvals of the step": {func(r *shipper.Release) {
			r.Status.Progress.Approvals = &shipper.ReleaseApprovals{Users: []string{"bob"}}
		}, false},
		"with one that somebody has refused": {func(r *shipper.Release) { before(r, "bob").RejectedBy = "eve" }, false},
		"with all of them":                   {func(r *shipper.Release) { before(r, "bob") }, true},
		"after a move back":                  {func(r *shipper.Release) { r.Status.Progress.MovedBack = true }, true},
	} {
		s := waved("")
		s.Waves[1].BeforeTasks = &shipper.WaveTasks{Approvals: 1}
		r := inWave(s, 1, 0)
		tc.edit(r)
		if is := progress.Achieved(r, position.Of(r)); is != tc.want {
			t.Errorf("%s: achieved %t", sentence, is)
		}
	}
}

// before gives the approvals of the beginning of a wave.
func before(r *shipper.Release, users ...string) *shipper.ReleaseApprovals {
	r.Status.Progress.BeforeApprovals = &shipper.ReleaseApprovals{Required: 1, Users: users}
	return r.Status.Progress.BeforeApprovals
}
