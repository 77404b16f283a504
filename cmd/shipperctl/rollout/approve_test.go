// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestDecisionsNameTheWaveThatTheyAreAbout(t *testing.T) {
	waved := wavedAt(0, 2, false)
	waved.Spec.Environment.Strategy.Waves[0].AfterTasks = &shipper.WaveTasks{Approvals: 1}
	gated := exampleObserved().releases[1]
	gated.Spec.Environment.Strategy.Steps[1].Gate = &shipper.StepGate{Approvals: 1}
	gated.Spec.TargetStep = 1
	begins := wavedAt(1, 0, false)
	begins.Spec.Environment.Strategy.Waves[1].BeforeTasks = &shipper.WaveTasks{Approvals: 1}
	begins.Status.Progress = &shipper.ReleaseProgress{Wave: 1, BeforeApprovals: &shipper.ReleaseApprovals{Required: 1}}
	begun := begins.DeepCopy()
	begun.Status.Progress.ConvergedTime, begun.Status.Progress.BeforeApprovals.Users = &metav1.Time{}, []string{"eve"}
	withdrawn := begins.DeepCopy()
	withdrawn.Status.Progress.ConvergedTime = &metav1.Time{}
	for sentence, tc := range map[string]struct {
		rel    *shipper.Release
		reject bool
		want   string
	}{
		"an approval of a wave": {waved, false, "step 2 of wave canary of release web-1 is approved by bob"},
		"a rejection of a wave": {waved, true, "step 2 of wave canary of release web-1 is rejected by bob, until approval web-1-2-x is " +
			"deleted: kubectl delete appr web-1-2-x -n " + waved.Namespace},
		"an approval of a step":                  {gated, false, "step 1 of release web-1 is approved by bob"},
		"an approval of the beginning of a wave": {begins, false, "the beginning of wave production of release web-1 is approved by bob"},
		"a rejection of it": {begins, true, "the beginning of wave production of release web-1 is rejected by bob, until approval web-1-0-x is " +
			"deleted: kubectl delete appr web-1-0-x -n " + waved.Namespace},
		"an approval of the step of a wave that has begun": {begun, false, "step 0 of wave production of release web-1 is approved by bob"},
		"an approval of the beginning after one was withdrawn": {
			withdrawn, false, "the beginning of wave production of release web-1 is approved by bob",
		},
		"of a Release without": {
			wavedAt(0, 2, false), false, "release web-1 needs no approvals: no gate and no wave of its strategy asks for any",
		},
	} {
		a, err := approvalOf(tc.rel, tc.reject, "p95 is up")
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			a.Name, a.Spec.By.Username = a.GenerateName+"x", "bob"
			got = saidOf(a, tc.rel)
			want := shipper.ApprovalSpec{
				Release: "web-1", Step: &tc.rel.Spec.TargetStep, Reason: "p95 is up", By: shipper.ApprovalUser{Username: "bob"},
			}
			switch tc.rel {
			case waved:
				want.Wave = new(int32)
			case begins, withdrawn:
				want.Wave, want.Task = new(int32(1)), "Before"
			case begun:
				want.Wave = new(int32(1))
			}
			if tc.reject {
				want.Decision = shipper.DecisionReject
			}
			if diff := cmp.Diff(want, a.Spec); diff != "" {
				t.Errorf("%s: the Approval (-want +got):\n%s", sentence, diff)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}
