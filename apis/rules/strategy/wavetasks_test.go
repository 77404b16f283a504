// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// waiting is what the newest Release waits for besides its clusters.
type waiting struct {
	Achieved                              *shipper.AchievedStep
	Approval, Readiness, WaitsForNextWave shipper.StrategyState
}

func (f *fleet) waits() waiting {
	s := f.newest().Status
	return waiting{
		Achieved: s.AchievedStep, Approval: s.Strategy.State.WaitingForApproval, Readiness: s.Strategy.State.WaitingForReadiness,
		WaitsForNextWave: s.Strategy.State.WaitingForCommand,
	}
}

func TestAWaveIsDoneWhenItsAfterTasksHavePassed(t *testing.T) {
	f := newFleet(t, 1)
	rel := f.newest()
	rel.UID = "now"
	rel.Spec.Environment.Strategy.Waves[0].AfterTasks = &shipper.WaveTasks{Approvals: 1, Conditions: []string{"example.com/Verified"}}
	f.goes(0, 1)
	f.settles()
	before := &shipper.AchievedStep{Step: 1, Name: vanguard[1].Name}
	check := func(what string, want waiting) {
		t.Helper()
		f.settles()
		if diff := cmp.Diff(want, f.waits()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	check("a step before the last has no tasks", waiting{Achieved: before, WaitsForNextWave: "True"})
	f.goes(0, 2)
	check("the condition is not there", waiting{Achieved: before, Approval: "False", Readiness: "True", WaitsForNextWave: "False"})
	rel.Status.Conditions = append(rel.Status.Conditions, shipper.Condition{Type: "example.com/Verified", Status: "True"})
	check("no user has approved", waiting{Achieved: before, Approval: "True", Readiness: "False", WaitsForNextWave: "False"})
	f.approvals = []shipper.Approval{{
		ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "now"}}},
		Spec: shipper.ApprovalSpec{
			Release: rel.Name, Step: new(int32(2)), Decision: shipper.DecisionApprove, By: shipper.ApprovalUser{Username: "bob"},
		},
	}}
	done := &shipper.AchievedStep{Step: 2, Name: vanguard[2].Name}
	check("all tasks have passed", waiting{Achieved: done, Approval: "False", Readiness: "False", WaitsForNextWave: "True"})
}
