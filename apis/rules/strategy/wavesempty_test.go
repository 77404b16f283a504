// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestAnEmptyWaveWaitsForItsTasks has a wave without clusters in front of all: nothing is requested before it is approved.
func TestAnEmptyWaveWaitsForItsTasks(t *testing.T) {
	f := newFleet(t, 3)
	rel := f.newest()
	rel.UID = "now"
	rel.Annotations[shipper.ReleaseWavesAnnotation] = waves.Assigned{"a": 1, "b": 1, "c": 1, "d": 1}.String()
	rel.Spec.Environment.Strategy.Waves[0].AfterTasks = &shipper.WaveTasks{Approvals: 1}
	f.untouched = []string{"a", "b", "c", "d"}
	f.goes(0, 2)
	f.settles()
	waits := f.waits()
	if waits.Achieved != nil && waits.Achieved.Step == 2 || waits.Approval != "True" || waits.WaitsForNextWave != "False" {
		t.Errorf("before an approval it is %+v", waits)
	}
	f.wants("nothing", map[string]int32{})
	f.approvals = []shipper.Approval{{
		ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "now"}}},
		Spec: shipper.ApprovalSpec{
			Release: rel.Name, Step: new(int32(2)), Decision: shipper.DecisionApprove, By: shipper.ApprovalUser{Username: "bob"},
		},
	}}
	f.settles()
	done := &shipper.AchievedStep{Step: 2, Name: vanguard[2].Name}
	want := waiting{Achieved: done, Approval: "False", WaitsForNextWave: "True"}
	if diff := cmp.Diff(want, f.waits()); diff != "" {
		t.Errorf("after it (-want +got):\n%s", diff)
	}
	f.wants("nothing", map[string]int32{})
}
