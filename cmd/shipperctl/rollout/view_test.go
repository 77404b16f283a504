// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// exampleObserved is an Application in the middle of its second rollout, in two clusters, one of which has trouble.
func exampleObserved() *observed {
	env := shipper.ReleaseEnvironment{
		Chart: shipper.Chart{Name: "nginx", Version: "0.0.2"},
		Strategy: &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{
			{Name: "staging"}, {Name: "half"}, {Name: "full on"},
		}},
	}
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "app",
		Annotations: map[string]string{shipper.AppChartVersionRawAnnotation: "~0.0"},
	}}
	app.Spec.Template = env
	app.Status.Conditions = []shipper.Condition{
		{Type: shipper.ApplicationReleaseSynced, Status: corev1.ConditionFalse, Reason: "CreateReleaseFailed", Message: "no more names"},
	}
	o := &observed{app: app, capacity: map[string]*shipper.CapacityTarget{}, traffic: map[string]*shipper.TrafficTarget{}}
	release := func(generation int, percent, ready int32, weight uint32) *shipper.Release {
		yes := true
		rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-" + strconv.Itoa(generation), CreationTimestamp: metav1.NewTime(now.Add(-4 * time.Minute)),
			Annotations: map[string]string{
				shipper.ReleaseGenerationAnnotation: strconv.Itoa(generation), shipper.ReleaseClustersAnnotation: "eu,us",
				shipper.ReleaseRequestedByAnnotation: "ann",
			},
			Labels:          map[string]string{shipper.AppLabel: "web"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Application", Name: "web", UID: "app", Controller: &yes}},
		}}
		rel.Spec.Environment = env
		ct, tt := &shipper.CapacityTarget{}, &shipper.TrafficTarget{}
		for _, cluster := range []string{"eu", "us"} {
			ct.Spec.Clusters = append(ct.Spec.Clusters, shipper.ClusterCapacityTarget{Name: cluster, Percent: percent, TotalReplicaCount: 10})
			ct.Status.Clusters = append(ct.Status.Clusters, shipper.ClusterCapacityStatus{Name: cluster, AvailableReplicas: ready})
			tt.Status.Clusters = append(tt.Status.Clusters, shipper.ClusterTrafficStatus{Name: cluster, AchievedTraffic: weight})
		}
		o.capacity[rel.Name], o.traffic[rel.Name] = ct, tt
		o.releases = append(o.releases, rel)
		return rel
	}
	old := release(0, 50, 5, 50)
	old.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseComplete, Status: corev1.ConditionTrue}}
	rel := release(1, 50, 3, 25)
	rel.Spec.TargetStep = 1
	rel.Status.AchievedStep = &shipper.AchievedStep{Step: 0, Name: "staging"}
	rel.Status.Strategy = &shipper.ReleaseStrategyStatus{Conditions: []shipper.ReleaseStrategyCondition{
		{Condition: shipper.Condition{Type: "ContenderAchievedCapacity", Status: corev1.ConditionFalse, Message: "capacity in us"}},
		{Condition: shipper.Condition{Type: "ContenderAchievedInstallation", Status: corev1.ConditionTrue}},
	}}
	us := &o.capacity["web-1"].Status.Clusters[1]
	us.SadPods = []shipper.PodStatus{{Name: "a", Containers: []corev1.ContainerStatus{{
		Image: "nginx:boom", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
	}}}}
	us.Conditions = []shipper.Condition{{Type: shipper.TargetOperational, Status: corev1.ConditionFalse, Message: "out of reach"}}
	return o
}

func TestDraw(t *testing.T) {
	half := func() *clusterSide { return &clusterSide{Ready: 5, Wanted: 5, All: 10, Weight: 50} }
	want := &View{
		Namespace: "shop", Application: "web", Release: "web-1", Chart: "nginx 0.0.2 (~0.0)", RequestedBy: "ann",
		RequestedAt: now.Add(-4 * time.Minute), Incumbent: "web-0",
		Steps:    []stepState{{Name: "staging", Achieved: true}, {Name: "half", Target: true}, {Name: "full on"}},
		Waiting:  []string{"capacity in us"},
		Problems: []string{"ReleaseSynced: no more names"},
		Clusters: []Cluster{
			{Name: "eu", Contender: clusterSide{Ready: 3, Wanted: 5, All: 10, Weight: 25}, Incumbent: half()},
			{
				Name: "us", Contender: clusterSide{Ready: 3, Wanted: 5, All: 10, Weight: 25}, Incumbent: half(),
				Notes: []string{"out of reach", `1 pod ImagePullBackOff "nginx:boom"`},
			},
		},
	}
	if diff := cmp.Diff(want, viewOf(exampleObserved(), now), cmp.AllowUnexported(clusterSide{})); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
}

func TestDrawSaysWhatADeletionWaitsFor(t *testing.T) {
	o := exampleObserved()
	o.app.Status.Conditions = []shipper.Condition{
		{Type: shipper.ApplicationDeleting, Status: corev1.ConditionTrue, Reason: shipper.HookFailed, Message: "cluster eu: a hook failed"},
	}
	want := []string{"Deleting: cluster eu: a hook failed"}
	if diff := cmp.Diff(want, viewOf(o, now).Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestDrawBlocks(t *testing.T) {
	o := exampleObserved()
	at := metav1.NewTime(now.Add(time.Hour))
	o.blocks = []*shipper.RolloutBlock{
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "incident"},
			Spec:       shipper.RolloutBlockSpec{Message: "hands off", Author: shipper.RolloutBlockAuthor{Name: "joe"}},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: shipper.GlobalBlocksNamespace, Name: "freeze"},
			Spec:       shipper.RolloutBlockSpec{Message: "later", Schedule: &shipper.RolloutBlockSchedule{Start: &at}},
		},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "another"}},
	}
	want := blockSummary{InEffect: []string{"shop/incident (hands off; joe)"}, Next: "rollout-blocks-global/freeze", NextStart: at.Time}
	if diff := cmp.Diff(want, viewOf(o, now).Blocks); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
}

func TestAnOverriddenBlockIsListedAsOverridden(t *testing.T) {
	o := exampleObserved()
	freeze := &shipper.RolloutBlock{Spec: shipper.RolloutBlockSpec{Message: "books", Author: shipper.RolloutBlockAuthor{Name: "joe"}}}
	freeze.Namespace, freeze.Name = shipper.GlobalBlocksNamespace, "freeze"
	o.blocks = []*shipper.RolloutBlock{freeze}
	o.releases[1].Annotations[shipper.RolloutBlockOverrideAnnotation] = "rollout-blocks-global/freeze"
	p := viewOf(o, now)
	if diff := cmp.Diff(blockSummary{Overridden: []string{"rollout-blocks-global/freeze (books; joe)"}}, p.Blocks); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"overridden: rollout-blocks-global/freeze (books; joe)"}, p.blocks(now)); diff != "" {
		t.Errorf("the lines of blocks (-want +got):\n%s", diff)
	}
}

func TestAServiceWithoutEndpointsIsShown(t *testing.T) {
	o := exampleObserved()
	const message = `Service "web-prod" has no ready endpoints`
	o.traffic["web-0"].Status.Clusters[0].Conditions = []shipper.Condition{{
		Type: shipper.TargetReady, Status: corev1.ConditionFalse, Reason: shipper.ServiceWithoutEndpoints, Message: message,
	}}
	if diff := cmp.Diff([]string{message}, viewOf(o, now).Clusters[0].Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestDrawWhatIsDone(t *testing.T) {
	o := exampleObserved()
	rel := o.releases[1]
	rel.Spec.TargetStep, rel.Status.AchievedStep = 2, &shipper.AchievedStep{Step: 2, Name: "full on"}
	rel.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseComplete, Status: corev1.ConditionTrue}}
	rel.Status.Strategy.Conditions = nil
	if p := viewOf(o, now); !p.Complete || p.Incumbent != "web-0" || len(p.Waiting) != 0 {
		t.Errorf("while the earlier Release has Pods: %+v", p)
	}
	for i := range o.capacity["web-0"].Status.Clusters {
		o.capacity["web-0"].Status.Clusters[i].AvailableReplicas = 0
	}
	if p := viewOf(o, now); p.Incumbent != "" || p.Clusters[0].Incumbent != nil {
		t.Errorf("when it has none: %+v", p)
	}
}

// TestDrawWhatWasAskedForLast is about the moments until the status speaks of it.
func TestDrawWhatWasAskedForLast(t *testing.T) {
	o := exampleObserved()
	rel := o.releases[1]
	rel.Generation, rel.Status.ObservedGeneration, rel.CreationTimestamp = 3, 2, metav1.NewTime(now)
	rel.Status.Strategy = &shipper.ReleaseStrategyStatus{State: shipper.ReleaseStrategyState{WaitingForCommand: shipper.StrategyStateTrue}}
	want := []string{"what was asked for last to begin"}
	if diff := cmp.Diff(want, viewOf(o, now).Waiting); diff != "" {
		t.Errorf("waits for (-want +got):\n%s", diff)
	}
	rel.Status.ObservedGeneration = 3
	want = []string{"a command: shipperctl rollout advance, or another targetStep"}
	if diff := cmp.Diff(want, viewOf(o, now).Waiting); diff != "" {
		t.Errorf("once it does, waits for (-want +got):\n%s", diff)
	}
}

func TestDrawNoConstraintOfWhatWasGivenUp(t *testing.T) {
	o := exampleObserved()
	o.app.Annotations[shipper.AppChartVersionRawAnnotation] = "0.0.3"
	if p := viewOf(o, now); p.Chart != "nginx 0.0.2" {
		t.Errorf("the chart is %s", p.Chart)
	}
}

func TestDrawBeforeTheFirstRelease(t *testing.T) {
	o := exampleObserved()
	o.releases, o.app.Status.Conditions = nil, nil
	want := &View{Namespace: "shop", Application: "web", Chart: "nginx 0.0.2 (~0.0)", Waiting: []string{"the first release to be made"}}
	if diff := cmp.Diff(want, viewOf(o, now)); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
}

func TestARolloutOfResourcesHasNoChart(t *testing.T) {
	o := exampleObserved()
	o.app.Spec.Template.Chart, o.app.Spec.Template.Resources = shipper.Chart{}, &shipper.Resources{}
	p := viewOf(o, now)
	var head []string
	p.head(func(line string) { head = append(head, line) }, 120, now)
	if want := "shop/web   by ann, 4m ago"; head[0] != want {
		t.Errorf("the screen begins with %q, want %q", head[0], want)
	}
	if lines := p.Lines(now); strings.Contains(lines, "chart: ") {
		t.Errorf("the lines have a chart:\n%s", lines)
	}
}

func TestPodsAreShownAsFoundOnlyWhereSomeWereFound(t *testing.T) {
	for ready, want := range map[int32][]string{
		0: nil,
		2: {"pods of web-1 are as they were found: Shipper looks at them before it asks for any number"},
	} {
		o := &observed{capacity: map[string]*shipper.CapacityTarget{"web-1": {
			Spec:   shipper.CapacityTargetSpec{Clusters: []shipper.ClusterCapacityTarget{{Name: "eu", AsFound: true}}},
			Status: shipper.CapacityTargetStatus{Clusters: []shipper.ClusterCapacityStatus{{Name: "eu", AvailableReplicas: ready}}},
		}}}
		if diff := cmp.Diff(want, notes(o, "web-1", "eu")); diff != "" {
			t.Errorf("%d Pods (-want +got):\n%s", ready, diff)
		}
	}
}
