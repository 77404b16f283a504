// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// state is how far the newest Release is, as a plan has it.
func (p *placed) state(edits ...func(*strategy.Observed)) strategy.StepState {
	o := strategy.Observed{Releases: p.releases, Leaving: p.leaving}
	for _, edit := range edits {
		edit(&o)
	}
	return strategy.Make(o, metav1.Unix(0, 0)).Step
}

func TestAWaveOfResourcesAwaitsItsTasks(t *testing.T) {
	p, rel := placedInWaves(t, 1)
	rel.UID, rel.Annotations[shipper.ReleaseRequestedByAnnotation] = "r1", "ann"
	rel.Spec.Environment.Strategy.Waves[0].AfterTasks = &shipper.WaveTasks{
		Approvals: 1, Conditions: []string{"example.com/Verified"}, Wait: "1h",
	}
	if p.run(t); p.state().Achieved || rel.Status.AchievedStep != nil {
		t.Errorf("the wave is done without its tasks: %+v", rel.Status.AchievedStep)
	}
	waiting := func() (out []string) {
		for _, c := range rel.Status.Strategy.Conditions {
			if c.Status != "True" {
				out = append(out, c.Type+": "+c.Message)
			}
		}
		return out
	}
	check := func(want string) {
		t.Helper()
		p.install()
		p.step(t)
		if diff := cmp.Diff([]string{want}, waiting()); diff != "" {
			t.Errorf("it waits for (-want +got):\n%s", diff)
		}
	}
	check(`ContenderAchievedReadiness: release "r1" lacks conditions that others set in its status: example.com/Verified is not there yet`)
	rel.Status.Conditions = append(rel.Status.Conditions, shipper.Condition{Type: "example.com/Verified", Status: "True"})
	check("ContenderAchievedWait: wave canary waits 1h after its clusters have the Release")
	rel.Status.Progress = &shipper.ReleaseProgress{ConvergedTime: new(metav1.Unix(-3601, 0))}
	check("ContenderAchievedApprovals: wave canary has 0 of 1 approvals")
	approval := shipper.Approval{Spec: shipper.ApprovalSpec{
		Release: "r1", Step: ptr.To[int32](0), Wave: ptr.To[int32](0), By: shipper.ApprovalUser{Username: "bob"},
	}}
	approval.OwnerReferences = []metav1.OwnerReference{stamp.ReleaseReference(rel)}
	approved := p.state(func(o *strategy.Observed) { o.Approvals = []shipper.Approval{approval} })
	if !approved.Achieved || approved.Approvals == nil || len(approved.Approvals.Users) != 1 {
		t.Errorf("approved: %+v", approved)
	}
}

func TestABlockHoldsOneClusterOfAWaveOfResources(t *testing.T) {
	p, rel := placedInWaves(t, 1)
	p.run(t)
	rel.Spec.TargetWave = ptr.To[int32](1)
	p.blocked = map[string]string{"b": "rollouts blocked by: work/stop"}
	p.run(t)
	p.install()
	if got := p.step(t); got != "a:r1 b:r0 c:r1 d:r1" || p.complete("r1") {
		t.Errorf("got %s, complete %t", got, p.complete("r1"))
	}
	want := shipper.ReleaseWave{Name: "production", Clusters: 3, Achieved: 2, Blocked: 1, BlockedClusters: []string{"b"}}
	if diff := cmp.Diff(want, rel.Status.Waves[1]); diff != "" {
		t.Errorf("wave (-want +got):\n%s", diff)
	}
	is := p.state(func(o *strategy.Observed) { o.BlockedIn = p.blocked })
	lacks := []strategy.Lack{{Cluster: "b", Reachable: true, Blocked: true, Reason: "RolloutsBlocked", Message: p.blocked["b"]}}
	if diff := cmp.Diff(lacks, is.Lacking); diff != "" {
		t.Errorf("lacking (-want +got):\n%s", diff)
	}
	p.blocked = nil
	p.run(t)
	p.run(t)
	p.blocked = map[string]string{"c": "rollouts blocked by: work/stop"}
	moveBack(rel, 0)
	p.run(t)
	if diff := cmp.Diff([]string{"b", "d"}, p.releases[0].Installation.Spec.Clusters); diff != "" || p.describe() != "a:r1 b:r0 c:r1 d:r0" {
		t.Errorf("back, with a block: %s; clusters of the earlier Release (-want +got):\n%s", p.describe(), diff)
	}
	p.blocked = nil
	p.run(t)
	if got := p.describe(); got != "a:r1 b:r0 c:r0 d:r0" {
		t.Errorf("back, without blocks: %s", got)
	}
}

func TestAWaveOfResourcesGoesOnWithoutClustersThatMayFail(t *testing.T) {
	p, rel := placedInWaves(t, 1)
	s := rel.Spec.Environment.Strategy
	s.ProgressDeadline, s.MaxFailures = "2m", ptr.To(intstr.FromInt(1))
	p.run(t)
	rel.Spec.TargetWave, p.lame = ptr.To[int32](1), map[string]bool{"b": true}
	checkStates(t, p.run(t), "a:r1 b:r1 c:r0 d:r0")
	p.install()
	if is := p.state(); cmp.Diff([]string{"b"}, is.Late) != "" || is.OverBudget != "" {
		t.Errorf("late %v, over budget %q", is.Late, is.OverBudget)
	}
	rel.Status.FailedClusters = []string{"b"} // as progress decides at the deadline
	p.run(t)
	p.run(t)
	want := shipper.ReleaseWave{Name: "production", Clusters: 3, Achieved: 2, Failed: 1, FailedClusters: []string{"b"}}
	if diff := cmp.Diff(want, rel.Status.Waves[1]); diff != "" || p.complete("r1") || len(p.releases[0].Installation.Spec.Clusters) == 0 {
		t.Errorf("complete %t, r0 keeps %v, wave (-want +got):\n%s", p.complete("r1"), p.releases[0].Installation.Spec.Clusters, diff)
	}
	p.lame = nil
	p.run(t)
	if p.run(t); !p.complete("r1") || len(rel.Status.FailedClusters) > 0 {
		t.Errorf("when it is ready: complete %t, failed %v", p.complete("r1"), rel.Status.FailedClusters)
	}
}

func TestTooManyClustersOfAWaveOfResourcesFail(t *testing.T) {
	p, rel := placedInWaves(t, 3)
	s := rel.Spec.Environment.Strategy
	s.ProgressDeadline, s.MaxFailures = "2m", ptr.To(intstr.FromInt(1))
	p.run(t)
	rel.Spec.TargetWave, p.lame = ptr.To[int32](1), map[string]bool{"b": true, "c": true}
	p.run(t)
	p.install()
	is, over := p.state(), "2 clusters (b, c) failed, and maxFailures is 1"
	if diff := cmp.Diff(over, is.OverBudget); diff != "" {
		t.Errorf("over budget (-want +got):\n%s", diff)
	}
}

func TestAStatusOfAnEarlierTargetOpensNoWaveOfResources(t *testing.T) {
	p, rel := placedInWaves(t, 1)
	p.install()
	p.step(t) // a is requested
	p.releases[1].Installation.Status = *p.releases[0].Installation.Status.DeepCopy()
	p.releases[1].Installation.Generation, p.releases[1].Installation.Status.ObservedGeneration = 3, 2
	if p.step(t); rel.Status.AchievedStep != nil || p.state().Converged {
		t.Errorf("achieved by what was observed before: %+v", rel.Status.AchievedStep)
	}
}

func TestAnOlderReleaseThatIsDeletedAmidWavesReturnsItsClusters(t *testing.T) {
	p, rel := placedInWaves(t, 1)
	p.run(t)
	rel.Spec.TargetWave = ptr.To[int32](1)
	p.install()
	p.step(t) // b is requested
	p.release("r2", "1", "a", "b", "c", "d")
	newest := p.releases[2].Release
	newest.Annotations[shipper.ReleaseWavesAnnotation] = "a=1,b=1,c=1,d=0"
	newest.Spec.Environment.Strategy = rel.Spec.Environment.Strategy.DeepCopy()
	if p.run(t); p.describe() != "a:r1 b:r1 c:r0 d:r2" {
		t.Fatalf("amid both: %s", p.describe())
	}
	p.leaving, p.releases = p.releases[1:2:2], []strategy.Release{p.releases[0], p.releases[2]}
	p.run(t)
	if got := p.describe(); got != "a:r0 b:r0 c:r0 d:r2" || len(p.leaving) > 0 {
		t.Errorf("got %s, leaving %d", got, len(p.leaving))
	}
}

func TestAnImmediateRollbackOfResourcesIsNotBounded(t *testing.T) {
	p, rel := placedInWaves(t, 1)
	rel.Annotations[shipper.ReleaseRollbackOfAnnotation], rel.Spec.TargetWave = "r0", ptr.To[int32](1)
	checkStates(t, p.run(t), "a:r1 b:r1 c:r1 d:r1")
}

func TestAClusterOfNoWaveKeepsResourcesFromCompleting(t *testing.T) {
	p, rel := placedInWaves(t, 3)
	rel.Annotations[shipper.ReleaseWavesAnnotation] = "a=0,b=1,c=1"
	p.run(t)
	rel.Spec.TargetWave = ptr.To[int32](1)
	p.run(t)
	p.run(t)
	if got := p.describe(); got != "a:r1 b:r1 c:r1 d:r0" || p.complete("r1") {
		t.Errorf("got %s, complete %t", got, p.complete("r1"))
	}
	want := []strategy.Lack{{Cluster: "d", Reachable: true, Reason: "NoWaveForClusters", Message: "no wave of the strategy selects it"}}
	if diff := cmp.Diff(want, p.state().Lacking); diff != "" {
		t.Errorf("lacking (-want +got):\n%s", diff)
	}
}

func TestAnEmptyWaveOfResourcesIsDone(t *testing.T) {
	p, rel := placedInWaves(t, 1)
	rel.Annotations[shipper.ReleaseWavesAnnotation] = "a=1,b=1,c=1,d=1"
	if checkStates(t, p.run(t), "a:r0 b:r0 c:r0 d:r0"); cmp.Diff(&shipper.AchievedStep{}, rel.Status.AchievedStep) != "" {
		t.Errorf("achieved %v", rel.Status.AchievedStep)
	}
}

func TestAPositionThatWavesOfResourcesLackIsNotCarriedOut(t *testing.T) {
	p, rel := placedInWaves(t, 1)
	rel.Spec.TargetStep = 3 // while no webhook answers
	checkStates(t, p.run(t), "a:r0 b:r0 c:r0 d:r0")
	c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseStrategyExecuted)
	if c == nil || c.Reason != shipper.StrategyExecutionFailed {
		t.Errorf("condition %+v", c)
	}
}
