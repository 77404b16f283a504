// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// given is an Approval of a user, for the task of a run that waits, a second after it began to.
func given(run *shipper.SequenceRun, by string, edits ...func(*shipper.Approval)) shipper.Approval {
	out := shipper.Approval{
		ObjectMeta: metav1.ObjectMeta{Name: "by-" + by, CreationTimestamp: metav1.NewTime(start.Add(time.Second))},
		Spec:       shipper.ApprovalSpec{Run: run.Name, By: shipper.ApprovalUser{Username: by}, Decision: shipper.DecisionApprove},
	}
	StampApproval(&out, run, start)
	for _, edit := range edits {
		edit(&out)
	}
	return out
}

func rejects(a *shipper.Approval) {
	a.Name, a.Spec.Decision = a.Name+"-no", shipper.DecisionReject
	a.CreationTimestamp = metav1.NewTime(start.Add(2 * time.Second))
}

// TestApprovals is KS21, scenarios 10, 12 and 13.
func TestApprovals(t *testing.T) {
	two := shipper.Task{Name: "approval", Properties: shipper.FreeForm{"approvals": float64(2)}}
	const waits = "Running [approval Waiting]"
	for sentence, tc := range map[string]struct {
		given func(run *shipper.SequenceRun) []shipper.Approval
		after time.Duration
		want  string
	}{
		"one of two": {
			func(run *shipper.SequenceRun) []shipper.Approval { return []shipper.Approval{given(run, "ann")} }, 0, waits,
		},
		"the same user twice": {
			func(run *shipper.SequenceRun) []shipper.Approval {
				return []shipper.Approval{given(run, "ann"), given(run, "ann")}
			}, 0, waits,
		},
		"one approves, and refuses later": {
			func(run *shipper.SequenceRun) []shipper.Approval {
				return []shipper.Approval{given(run, "ann"), given(run, "ann", rejects)}
			}, 0,
			"Failed [approval Finished fail] (task approval: ann rejected it) triggers staging.rollback",
		},
		"by who asked for the run, and for the one that it repeats": {
			func(run *shipper.SequenceRun) []shipper.Approval {
				run.Spec.RequestedBy.Username, run.Status.Resolved.EarlierRequesters = "ann", []string{"bob"}
				return []shipper.Approval{given(run, "ann"), given(run, "bob")}
			}, 0, waits,
		},
		"two users": {
			func(run *shipper.SequenceRun) []shipper.Approval {
				return []shipper.Approval{given(run, "ann"), given(run, "bob")}
			}, 0,
			"Passed [approval Finished pass]",
		},
		"one refuses": {
			func(run *shipper.SequenceRun) []shipper.Approval {
				return []shipper.Approval{given(run, "ann"), given(run, "bob", rejects)}
			}, 0,
			"Failed [approval Finished fail] (task approval: bob rejected it) triggers staging.rollback",
		},
		"expired": {
			func(run *shipper.SequenceRun) []shipper.Approval { return []shipper.Approval{given(run, "ann")} }, 72 * time.Hour,
			"Failed [approval Finished fail] (task approval: expired after 72h0m0s with 1 of 2 approvals) triggers staging.rollback",
		},
		"nearly expired, after the time-outs of run and task": {
			func(*shipper.SequenceRun) []shipper.Approval { return nil }, 71 * time.Hour, waits,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := begin(t, two)
			run := s.creates("a", "delivery")
			s.decides(run, nil)
			s.given = tc.given(run)
			RecordApprovals(s.given, run, metav1.NewTime(s.now))
			s.after(tc.after)
			s.decides(run, nil)
			s.tells("0s a: Running [approval Waiting]", fmt.Sprintf("%s a: %s", tc.after, tc.want))
		})
	}
}

// TestAnApprovalOfOneContentCountsForNoOther has Approvals as users store them while no webhook and no policy is called: bob's would be
// the second of two.
func TestAnApprovalOfOneContentCountsForNoOther(t *testing.T) {
	two := shipper.FreeForm{"approvals": float64(2)}
	tasks := []shipper.Task{{Name: "approval", Properties: two}, {Name: "approval", Properties: two}, {Name: "deployment"}}
	const notOf = "metadata: Forbidden: labels or owner are not those of run a: leave them out"
	task := func(value, why string) string { return fmt.Sprintf("spec.task: Invalid value: %q: %s", value, why) }
	for sentence, tc := range map[string]struct {
		edit func(*shipper.Approval)
		run  func(*shipper.SequenceRun)
		why  string
	}{
		"of this content":                       {},
		"of the run before, which had the name": {edit: func(a *shipper.Approval) { a.OwnerReferences[0].UID = "earlier" }, why: notOf},
		"of no run":                             {edit: func(a *shipper.Approval) { a.OwnerReferences = nil }, why: notOf},
		"by a right on another stage":           {edit: func(a *shipper.Approval) { a.Labels[shipper.StageLabel] = "x" }, why: notOf},
		"by a right on another Shipyard":        {edit: func(a *shipper.Approval) { a.Labels[shipper.ShipyardLabel] = "x" }, why: notOf},
		"of another run":                        {edit: func(a *shipper.Approval) { a.Labels[shipper.RunLabel] = "x" }, why: notOf},
		"by none":                               {edit: func(a *shipper.Approval) { a.Spec.By.Username = "" }, why: notOf},
		"of another task": {
			edit: func(a *shipper.Approval) { a.Spec.Task = "approval#2" }, why: task("approval#2", "run a waits for task approval"),
		},
		"of no task": {edit: func(a *shipper.Approval) { a.Spec.Task = "" }, why: task("", "run a waits for task approval")},
		"before the content was known": {
			edit: func(a *shipper.Approval) { a.CreationTimestamp = metav1.NewTime(start.Add(-time.Second)) },
			why:  task("approval", "it was created before task approval of run a waited, at 2026-03-01T12:00:00Z: delete it, and create another"),
		},
		"of another version": {
			run: func(run *shipper.SequenceRun) { run.Status.Resolved.Version.Version = "2" },
			why: task("approval", "run a would deploy something else than when task approval began to wait: abort it"),
		},
		"of another archive of the version": {
			run: func(run *shipper.SequenceRun) { run.Status.Resolved.Version.Digest = "2" },
			why: task("approval", "run a would deploy something else than when task approval began to wait: abort it"),
		},
		"of other values": {
			run: func(run *shipper.SequenceRun) {
				run.Status.Data = shipper.FreeForm{"configurationChange": map[string]any{"values": map[string]any{"a": "b"}}}
			},
			why: task("approval", "run a would deploy something else than when task approval began to wait: abort it"),
		},
		"by the account that deploys": {
			edit: func(a *shipper.Approval) { a.Spec.By.Username = "system:serviceaccount::" },
			why:  `user "system:serviceaccount::" writes what run a does: another user has to approve it`,
		},
		"by who asked": {
			run: func(run *shipper.SequenceRun) { run.Spec.RequestedBy.Username = "bob" },
			why: `user "bob" has asked for run a: another user has to approve it`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := begin(t, tasks...)
			run := s.creates("a", "delivery")
			s.decides(run, nil)
			bobs := given(run, "bob")
			if tc.edit != nil {
				tc.edit(&bobs)
			}
			if tc.run != nil {
				tc.run(run)
			}
			s.given = []shipper.Approval{bobs}
			s.after(time.Minute)
			RecordApprovals(s.given, run, metav1.NewTime(s.now))
			s.decides(run, nil)
			first := run.Status.Tasks[0]
			var want shipper.ApprovalStatus
			is := shipper.Condition{Type: shipper.ApprovalCounted, Status: "True", LastTransitionTime: metav1.NewTime(s.now)}
			if tc.why != "" {
				is.Status, is.Reason, is.Message = "False", shipper.ApprovalNotCounted, tc.why
			} else {
				want.EventID, want.Subject = first.EventID, first.Subject
			}
			want.Conditions = []shipper.Condition{is}
			if diff := cmp.Diff(want, s.given[0].Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if counted := len(first.Approvals) == 1; counted != (tc.why == "") {
				t.Errorf("counted: %+v", first.Approvals)
			}
		})
	}
}

// TestARecordedApprovalCountsForWhatItWasRecordedFor alone.
func TestARecordedApprovalCountsForWhatItWasRecordedFor(t *testing.T) {
	for sentence, edit := range map[string]func(*shipper.ApprovalStatus){
		"of another attempt": func(is *shipper.ApprovalStatus) { is.EventID = "earlier" },
		"of other content":   func(is *shipper.ApprovalStatus) { is.Subject = "other" },
		"not counted":        func(is *shipper.ApprovalStatus) { is.Conditions[0].Status = "False" },
		"not recorded":       func(is *shipper.ApprovalStatus) { is.Conditions = nil },
	} {
		s := begin(t, shipper.Task{Name: "approval"})
		run := s.creates("a", "delivery")
		s.decides(run, nil)
		s.given = []shipper.Approval{given(run, "bob")}
		RecordApprovals(s.given, run, metav1.NewTime(s.now))
		edit(&s.given[0].Status)
		s.decides(run, nil)
		if got := run.Status.Tasks[0]; got.State != shipper.TaskWaiting || len(got.Approvals) > 0 {
			t.Errorf("%s: %+v", sentence, got)
		}
	}
}
