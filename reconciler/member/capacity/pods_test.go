// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// aPod has one condition and containers.
func aPod(name string, condition corev1.PodCondition, containers ...corev1.ContainerStatus) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.PodStatus{
			Phase: corev1.PodPending, Conditions: []corev1.PodCondition{condition}, ContainerStatuses: containers,
		},
	}
}

var (
	isReady  = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	notReady = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}
)

func running(name string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func waiting(name, reason string) corev1.ContainerStatus {
	state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	return corev1.ContainerStatus{Name: name, State: state}
}

func terminated(name string, how corev1.ContainerStateTerminated) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &how}}
}

func TestSummarize(t *testing.T) {
	withInit := aPod("c", notReady)
	withInit.Status.InitContainerStatuses = []corev1.ContainerStatus{waiting("waiting-init-container", "ImagePullBackOff")}
	tests := map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"the golden one": {
			[]corev1.Pod{
				aPod("a", notReady, terminated("terminated-container", corev1.ContainerStateTerminated{Reason: "Completed"}),
					waiting("waiting-container", "ImagePullBackOff")),
				aPod("b", notReady, waiting("waiting-container", "ErrImagePull")),
				withInit,
			},
			`1x"terminated-container" containers with [Completed]; ` +
				`2x"waiting-container" containers with [ErrImagePull ImagePullBackOff]; ` +
				`1x"waiting-init-container" containers with [ImagePullBackOff]`,
		},
		"reasons are reported once": {
			[]corev1.Pod{aPod("a", notReady, waiting("app", "X")), aPod("b", notReady, waiting("app", "X"))},
			`2x"app" containers with [X]`,
		},
		"containers that run say nothing, so the conditions do": {
			[]corev1.Pod{aPod("a", notReady, running("app")), aPod("b", notReady, corev1.ContainerStatus{Name: "app"})},
			`2 pods are not Ready: [ContainersNotReady]`,
		},
		"a pod that is not scheduled": {
			[]corev1.Pod{aPod("a", corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse})},
			`1 pods are not PodScheduled: [no reason given]`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, summarize(tc.pods)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestSadPods(t *testing.T) {
	unscheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable"}
	odd := corev1.PodCondition{Type: "Odd", Status: corev1.ConditionFalse}
	both := aPod("both", odd)
	both.Status.Conditions = append(both.Status.Conditions, notReady, unscheduled)
	pods := []corev1.Pod{
		aPod("1", notReady, waiting("app", "X")), aPod("2", isReady), both, aPod("4", odd),
		aPod("5", notReady), aPod("6", notReady), aPod("7", notReady),
	}
	want := []shipper.PodStatus{
		{Name: "1", Phase: corev1.PodPending, Condition: notReady, Containers: []corev1.ContainerStatus{waiting("app", "X")}},
		{Name: "both", Phase: corev1.PodPending, Condition: unscheduled},
		{Name: "4", Phase: corev1.PodPending, Condition: odd},
		{Name: "5", Phase: corev1.PodPending, Condition: notReady},
		{Name: "6", Phase: corev1.PodPending, Condition: notReady},
	}
	if diff := cmp.Diff(want, unhealthyPods(pods)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPodsOf(t *testing.T) {
	d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}}
	pod := func(name, app string, phase corev1.PodPhase) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}},
			Status:     corev1.PodStatus{Phase: phase},
		}
	}
	going := pod("going", "web", corev1.PodRunning)
	going.DeletionTimestamp = &metav1.Time{}
	got, err := podsOf(d, []corev1.Pod{
		pod("b", "web", corev1.PodRunning), going, pod("done", "web", corev1.PodSucceeded),
		pod("evicted", "web", corev1.PodFailed),
		pod("other", "db", corev1.PodRunning), pod("a", "web", corev1.PodPending),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []corev1.Pod{pod("a", "web", corev1.PodPending), pod("b", "web", corev1.PodRunning)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: "nonsense"}}
	if _, err := podsOf(d, nil); err == nil {
		t.Error("a selector that makes no sense is no error")
	}
}

func TestPodReport(t *testing.T) {
	type breakdown = shipper.ClusterCapacityReportBreakdown
	type container = shipper.ClusterCapacityReportContainerBreakdown
	type state = shipper.ClusterCapacityReportContainerStateBreakdown
	type example = shipper.ClusterCapacityReportContainerBreakdownExample
	crashing := waiting("app", "CrashLoopBackOff")
	crashing.RestartCount = 3
	crashing.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 7}
	twice := aPod("a", isReady, running("app"))
	twice.Status.Conditions = append(twice.Status.Conditions, notReady)
	tests := map[string]struct {
		pods []corev1.Pod
		want []breakdown
	}{
		"no pods": {nil, nil},
		"one pod with one container": {
			[]corev1.Pod{aPod("a", isReady, running("app"))},
			[]breakdown{{Type: "Ready", Status: "True", Count: 1, Containers: []container{
				{Name: "app", States: []state{{Count: 1, Type: "Running", Example: example{Pod: "a"}}}},
			}}},
		},
		"two pods with two containers": {
			[]corev1.Pod{aPod("a", isReady, running("b"), running("a")), aPod("b", isReady, running("a"), running("b"))},
			[]breakdown{{Type: "Ready", Status: "True", Count: 2, Containers: []container{
				{Name: "a", States: []state{{Count: 2, Type: "Running", Example: example{Pod: "a"}}}},
				{Name: "b", States: []state{{Count: 2, Type: "Running", Example: example{Pod: "a"}}}},
			}}},
		},
		"conditions are sorted by type and status": {
			[]corev1.Pod{twice, aPod("b", corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue})},
			[]breakdown{
				{Type: "Initialized", Status: "True", Count: 1},
				{Type: "Ready", Status: "False", Reason: "ContainersNotReady", Count: 1, Containers: []container{
					{Name: "app", States: []state{{Count: 1, Type: "Running", Example: example{Pod: "a"}}}},
				}},
				{Type: "Ready", Status: "True", Count: 1, Containers: []container{
					{Name: "app", States: []state{{Count: 1, Type: "Running", Example: example{Pod: "a"}}}},
				}},
			},
		},
		"how containers ended": {
			[]corev1.Pod{
				aPod("a", notReady, terminated("app", corev1.ContainerStateTerminated{Reason: "A", Message: "went wrong"})),
				aPod("b", notReady, terminated("app", corev1.ContainerStateTerminated{Reason: "B", Signal: 9})),
				aPod("c", notReady, terminated("app", corev1.ContainerStateTerminated{Reason: "C", ExitCode: 1})),
				aPod("d", notReady, crashing),
			},
			[]breakdown{{
				Type: "Ready", Status: "False", Reason: "ContainersNotReady", Count: 4, Containers: []container{
					{Name: "app", States: []state{
						{Count: 1, Type: "Terminated", Reason: "A", Example: example{Pod: "a", Message: "went wrong"}},
						{Count: 1, Type: "Terminated", Reason: "B", Example: example{Pod: "b", Message: "Terminated with signal 9"}},
						{Count: 1, Type: "Terminated", Reason: "C", Example: example{Pod: "c", Message: "Terminated with exit code 1"}},
						{
							Count: 1, Type: "Waiting", Reason: "CrashLoopBackOff",
							Example: example{Pod: "d", Message: "Terminated with exit code 7"},
						},
					}},
				},
			}},
		},
		"a state that the kubelet left empty": {
			[]corev1.Pod{aPod("a", notReady, corev1.ContainerStatus{Name: "app"})},
			[]breakdown{{Type: "Ready", Status: "False", Reason: "ContainersNotReady", Count: 1, Containers: []container{
				{Name: "app", States: []state{{Count: 1, Type: "Unknown", Example: example{Pod: "a"}}}},
			}}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := shipper.ClusterCapacityReport{
				Owner: shipper.ClusterCapacityReportOwner{Name: "web"}, Breakdown: tc.want,
			}
			if diff := cmp.Diff(want, podReport("web", tc.pods)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
