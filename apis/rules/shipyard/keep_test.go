// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestStrippedRunsAreSmall(t *testing.T) {
	whole := endedRun("a", shipper.ResultPass, start)
	whole.Status.Triggered = FollowUps(whole, promoting())
	whole.Status.Resolved.Sequence.Tasks[0].Properties = shipper.FreeForm{"values": map[string]any{}}
	whole.Status.Tasks = []shipper.TaskStatus{{Name: "deployment"}}
	got := whole.DeepCopy()
	got.Status.Triggered[0].Message = "version 1.2.3 has not passed"
	got.Status.Tasks[0].Message, got.Status.Tasks[0].Approvals = "rejected", []shipper.CountedApproval{{By: "ann"}}
	Strip(got)
	want := whole.DeepCopy()
	want.Spec.Data, want.Status.Data, want.Status.Resolved = nil, nil, ownTasks(whole.Status.Resolved)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	if !Deploys(got) || got.Status.Resolved.Sequence.Tasks[0].Properties != nil {
		t.Errorf("its tasks: %v", got.Status.Resolved.Sequence)
	}
	again := got.DeepCopy()
	if Strip(again); !cmp.Equal(got, again) {
		t.Errorf("a second time (-want +got):\n%s", cmp.Diff(got, again))
	}
}

func TestOnlyRunsThatHaveBegunAreUnderWay(t *testing.T) {
	run := endedRun("a", shipper.ResultPass, start)
	if IsUnderWay(run) {
		t.Error("a finished run is under way")
	}
	run.Status.StartTime, run.Status.Conditions = run.Status.FinishTime, nil
	if !IsUnderWay(run) {
		t.Error("a run that has begun is not under way")
	}
	run.Status.StartTime = nil
	if IsUnderWay(run) {
		t.Error("a queued run is under way")
	}
}
