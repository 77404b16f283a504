// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestFinishedRunsAreKeptSmall(t *testing.T) {
	whole := endedRun("a", shipper.ResultPass, start)
	whole.Status.Triggered = FollowUps(whole)
	awaits, done := whole.DeepCopy(), whole.DeepCopy()
	Shrink(awaits)
	if diff := cmp.Diff(whole, awaits); diff != "" {
		t.Errorf("a run whose follow-up is to be created (-want +got):\n%s", diff)
	}
	at := whole.Status.FinishTime
	whole.Status.Triggered[0].CreateTime, done.Status.Triggered[0].CreateTime = at, at
	Shrink(done)
	want := whole.DeepCopy()
	want.Spec.Data, want.Status.Data, want.Spec.Snapshot = nil, nil, OwnTasks(whole)
	if diff := cmp.Diff(want, done); diff != "" {
		t.Errorf("a run that is done (-want +got):\n%s", diff)
	}
	if !Deploys(&done.Spec) || len(done.Spec.Snapshot.Stages) != 1 {
		t.Errorf("its snapshot: %v", done.Spec.Snapshot)
	}
}
