// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// deploying is a run whose task deployment is under way.
func deploying(tasks ...shipper.Task) *shipper.SequenceRun {
	run := &shipper.SequenceRun{Spec: shipper.SequenceRunSpec{
		Stage: "qa", Sequence: "delivery", RequestedBy: shipper.ApprovalUser{Username: "ann"},
	}}
	run.Status.Resolved = &shipper.ResolvedRun{
		Stage: shipper.Stage{Name: "qa"}, Sequence: shipper.Sequence{Name: "delivery", Tasks: tasks},
		Version: shipper.RunVersion{Version: "2"}, EarlierRequesters: []string{"bob"},
	}
	run.Namespace, run.Name, run.UID = "shop", "web-1", "u"
	run.Status.Tasks = []shipper.TaskStatus{{Name: TaskDeployment, Ordinal: 1, State: shipper.TaskTriggered, EventID: "e"}}
	return run
}

func TestADeploymentBeforeATaskReleaseHoldsItsRelease(t *testing.T) {
	want := shipper.RunClaim{Namespace: "shop", Run: "web-1", UID: "u", EventID: "e", Requesters: []string{"ann", "bob"}}
	deploy, release := shipper.Task{Name: TaskDeployment}, shipper.Task{Name: TaskRelease}
	whole := shipper.Task{Name: TaskDeployment, Properties: shipper.FreeForm{"to": "last"}}
	for sentence, tc := range map[string]struct {
		tasks []shipper.Task
		hold  bool
	}{
		"alone":                          {[]shipper.Task{deploy}, false},
		"before a release":               {[]shipper.Task{deploy, {Name: TaskTest}, release}, true},
		"before a release, to the last":  {[]shipper.Task{whole, release}, false},
		"before another, and no release": {[]shipper.Task{deploy, deploy}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			want.Hold = tc.hold
			if diff := cmp.Diff(want, Claim(deploying(tc.tasks...))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReleasesThatARunLeavesHeldAreNamed(t *testing.T) {
	for sentence, tc := range map[string]struct {
		edit func(*shipper.SequenceRunStatus)
		want string
	}{
		"by a run that failed before its release": {func(*shipper.SequenceRunStatus) {}, "prod/web-1"},
		"none by a run under way":                 {func(s *shipper.SequenceRunStatus) { s.Conditions = nil }, ""},
		"none by a run that has released": {func(s *shipper.SequenceRunStatus) {
			s.Tasks = append(s.Tasks, shipper.TaskStatus{Name: TaskRelease, Ordinal: 1, Release: "prod/web-1"})
		}, ""},
		"none where a run takes it back": {func(s *shipper.SequenceRunStatus) {
			s.Triggered = []shipper.TriggeredRun{{Stage: "qa", Sequence: "back", TakesBack: true}}
		}, ""},
		"where the run that was to take it back was refused": {func(s *shipper.SequenceRunStatus) {
			s.Triggered = []shipper.TriggeredRun{{Stage: "qa", Sequence: "back", Refused: true}}
		}, "prod/web-1"},
	} {
		t.Run(sentence, func(t *testing.T) {
			run := deploying(shipper.Task{Name: TaskDeployment}, shipper.Task{Name: TaskRelease})
			run.Status.Tasks[0].Release = "prod/web-1"
			run.Status.Conditions = []shipper.Condition{{Type: shipper.RunFinished, Status: "True"}}
			tc.edit(&run.Status)
			if got := LeftHeld(run); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestATemplateIsThatOfTheRun(t *testing.T) {
	run := deploying(shipper.Task{Name: TaskDeployment, Properties: shipper.FreeForm{"deploymentstrategy": "direct"}})
	run.Spec.Data = shipper.FreeForm{"configurationChange": map[string]any{"values": map[string]any{"image": map[string]any{"tag": "v2"}}}}
	values := shipper.ChartValues{"image": map[string]any{"name": "web", "tag": "v1"}, "replicas": int64(3)}
	of := shipper.ReleaseEnvironment{Chart: shipper.Chart{Name: "web", Version: "1"}, Values: &values}
	now := shipper.ChartValues{"image": map[string]any{"name": "web", "tag": "v2"}, "replicas": int64(3)}
	want := &shipper.ReleaseEnvironment{
		Chart: shipper.Chart{Name: "web", Version: "2"}, Values: &now,
		Strategy: &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{{
			Name: "full on", Capacity: shipper.RolloutStrategyStepValue{Contender: 100}, Traffic: shipper.RolloutStrategyStepValue{Contender: 100},
		}}},
	}
	if diff := cmp.Diff(want, Template(run, &of)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"name": "web", "tag": "v1"}, values["image"]); diff != "" {
		t.Errorf("the template before has changed (-want +got):\n%s", diff)
	}
}
