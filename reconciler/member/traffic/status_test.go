// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	rules "shipper.dev/shipper/apis/rules/traffic"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
)

func TestReady(t *testing.T) {
	one := []string{"web-prod"}
	tests := map[string]struct {
		outcome                 Outcome
		status, reason, message string
	}{
		"as wanted": {Outcome{services: one, plan: rules.Plan{Needed: 2, Labelled: 2, Serving: 2}}, "True", "", ""},
		"no Service": {
			Outcome{}, "False", shipper.MissingService, "expected one Service with the label shipper-lb=production, found 0",
		},
		"two Services": {
			Outcome{services: []string{"a", "b"}}, "False", shipper.MissingService,
			"expected one Service with the label shipper-lb=production, found 2",
		},
		"nothing to do needs no Service": {Outcome{idle: true}, "True", "", ""},
		"moved just now": {
			Outcome{services: one, moved: true, plan: rules.Plan{Needed: 2, Enable: []string{"a", "b"}, Disable: []string{"c"}}},
			"False", shipper.InProgress, "moved 2 pods into traffic and 1 out of it",
		},
		"pods are asked for and not seen yet": {
			Outcome{services: one, plan: rules.Plan{Late: true}},
			"False", shipper.InProgress, "the pods designated to receive traffic are not there yet",
		},
		"pods are not ready": {
			Outcome{services: one, plan: rules.Plan{Needed: 3, Labelled: 3, Serving: 2, NotReady: 1}},
			"False", shipper.PodsNotReady, "1/3 pods designated to receive traffic are not ready",
		},
		"pods are not in endpoints": {
			Outcome{services: one, plan: rules.Plan{Needed: 3, Labelled: 3, Serving: 1}},
			"False", shipper.PodsNotInEndpoints, "2/3 pods designated to receive traffic are not yet in endpoints",
		},
		"pods wait for the Service, which another target turns": {
			Outcome{services: one, leader: "web-0", plan: rules.Plan{Needed: 3, Labelled: 3, Serving: 1}},
			"False", shipper.PodsNotInEndpoints, "2/3 pods designated to receive traffic are not yet in endpoints: " +
				`the Service is turned first, see the TrafficTarget of release "web-0"`,
		},
		"the preview lacks pods": {
			Outcome{services: one, previews: []string{"web-preview"}, previewLags: true, plan: rules.Plan{Needed: 1, Serving: 1}},
			"False", shipper.PreviewNotReady, "Service web-preview does not have all ready pods of the release yet",
		},
		"two previews": {
			Outcome{services: one, previews: []string{"a", "b"}, plan: rules.Plan{Needed: 1, Serving: 1}},
			"False", shipper.PreviewNotReady, "expected at most one Service with the label shipper-lb=preview, found 2",
		},
		"pods wait for those of others": {
			Outcome{services: one, plan: rules.Plan{Needed: 1, Labelled: 3, Serving: 3, Held: 2}},
			"False", shipper.InProgress, "2 pods stay in traffic until as many of other releases are in endpoints",
		},
		"pods are still in endpoints": {
			Outcome{services: one, plan: rules.Plan{Needed: 1, Labelled: 1, Serving: 3}},
			"False", shipper.InProgress, "2 pods taken out of traffic are still in endpoints",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := shipper.Condition{
				Type: shipper.TargetReady, Status: corev1.ConditionStatus(tc.status), Reason: tc.reason, Message: tc.message,
			}
			if diff := cmp.Diff(want, ready(tc.outcome)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	then, now := metav1.Unix(1000, 0), metav1.Unix(2000, 0)
	type state = corev1.ConditionStatus
	condition := func(kind string, is state, reason, message string, at metav1.Time) shipper.Condition {
		return shipper.Condition{Type: kind, Status: is, Reason: reason, Message: message, LastTransitionTime: at}
	}
	fine := condition("Operational", "True", "", "", then)
	good := []shipper.Condition{fine, condition("Ready", "True", "", "", then)}
	before := shipper.TrafficTargetStatus{
		ObservedGeneration: 1, Conditions: good,
		Clusters: []shipper.ClusterTrafficStatus{{Name: "east", AchievedTraffic: 7, Status: "Synced", Conditions: good}},
	}
	in := func(name string) shipper.ClusterTrafficTarget {
		return shipper.ClusterTrafficTarget{Name: name, Weight: 10}
	}
	one := []string{"web-prod"}
	lost := &fleet.Error{Cluster: "east", Reason: shipper.ClusterUnreachable, Message: "no answer"}
	connecting := &fleet.Error{
		Cluster: "east", Reason: shipper.TargetClusterClientError, Message: "connecting", Pending: true,
	}
	untried := &fleet.Error{Cluster: "east", Reason: shipper.CredentialsRefused, Message: "too few rights", Untried: true}
	type clusters = []shipper.ClusterTrafficStatus
	tests := map[string]struct {
		outcomes []Outcome
		general  error
		want     shipper.TrafficTargetStatus
	}{
		"as wanted": {
			[]Outcome{{want: in("east"), services: one, plan: rules.Plan{Needed: 1, Serving: 1, Achieved: 10}}}, nil,
			shipper.TrafficTargetStatus{ObservedGeneration: 2, Conditions: good, Clusters: clusters{
				{Name: "east", AchievedTraffic: 10, Status: "Synced", Conditions: good},
			}},
		},
		"under way": {
			[]Outcome{{want: in("east"), services: one, plan: rules.Plan{Needed: 2, Serving: 1, Achieved: 5}}}, nil,
			shipper.TrafficTargetStatus{
				ObservedGeneration: 2,
				Clusters: clusters{{Name: "east", AchievedTraffic: 5, Conditions: []shipper.Condition{
					fine, condition("Ready", "False", "PodsNotInEndpoints",
						"1/2 pods designated to receive traffic are not yet in endpoints", now),
				}}},
				Conditions: []shipper.Condition{fine, condition("Ready", "False", "ClustersNotReady",
					"east: PodsNotInEndpoints 1/2 pods designated to receive traffic are not yet in endpoints", now)},
			},
		},
		"a Service is missing": {
			[]Outcome{{want: in("east")}}, nil,
			shipper.TrafficTargetStatus{
				ObservedGeneration: 2,
				Clusters: clusters{{Name: "east", Status: "Failed", Conditions: []shipper.Condition{
					fine, condition("Ready", "False", "MissingService",
						"expected one Service with the label shipper-lb=production, found 0", now),
				}}},
				Conditions: []shipper.Condition{fine, condition("Ready", "False", "ClustersNotReady",
					"east: MissingService expected one Service with the label shipper-lb=production, found 0", now)},
			},
		},
		"a cluster that is lost keeps its number": {
			[]Outcome{{want: in("east"), err: lost}}, nil,
			shipper.TrafficTargetStatus{
				ObservedGeneration: 2,
				Clusters: clusters{{Name: "east", AchievedTraffic: 7, Status: "Failed", Conditions: []shipper.Condition{
					condition("Operational", "False", "ClusterUnreachable", "no answer", now),
					condition("Ready", "Unknown", "ClusterUnreachable", "no answer", now),
				}}},
				Conditions: []shipper.Condition{
					condition("Operational", "False", "ClustersNotOperational", "east: ClusterUnreachable no answer", now),
					condition("Ready", "False", "ClustersNotReady", "east: ClusterUnreachable no answer", now),
				},
			},
		},
		"an error of the cluster's API": {
			[]Outcome{{want: in("east"), err: errors.New("it broke")}}, nil,
			shipper.TrafficTargetStatus{
				ObservedGeneration: 2,
				Clusters: clusters{{Name: "east", AchievedTraffic: 7, Status: "Failed", Conditions: []shipper.Condition{
					fine, condition("Ready", "False", "InternalError", "it broke", now),
				}}},
				Conditions: []shipper.Condition{fine, condition("Ready", "False", "ClustersNotReady", "east: InternalError it broke", now)},
			},
		},
		"while a cluster is being connected to nothing is known to have changed": {
			[]Outcome{{want: in("east"), err: connecting}}, nil, before,
		},
		"a cluster that this installation has no credentials for yet is as another installation left it": {
			[]Outcome{{want: in("east"), err: untried}}, nil, before,
		},
		"a new cluster that is being connected to": {
			[]Outcome{{want: in("north"), err: connecting}}, nil,
			shipper.TrafficTargetStatus{
				ObservedGeneration: 1,
				Clusters: clusters{{Name: "north", Conditions: []shipper.Condition{
					condition("Operational", "Unknown", "TargetClusterClientError", "connecting", now),
					condition("Ready", "Unknown", "TargetClusterClientError", "connecting", now),
				}}},
				Conditions: []shipper.Condition{
					condition("Operational", "False", "ClustersNotOperational", "north: TargetClusterClientError connecting", now),
					condition("Ready", "False", "ClustersNotReady", "north: TargetClusterClientError connecting", now),
				},
			},
		},
		"a target that cannot be carried out anywhere": {
			nil, invalid("the label %s is missing", "shipper-app"),
			shipper.TrafficTargetStatus{ObservedGeneration: 1, Clusters: before.Clusters, Conditions: []shipper.Condition{
				condition("Operational", "False", "InternalError", "the label shipper-app is missing", now),
				condition("Ready", "False", "InternalError", "the label shipper-app is missing", now),
			}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tt := &shipper.TrafficTarget{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: *before.DeepCopy()}
			if diff := cmp.Diff(tc.want, status(tt, tc.outcomes, tc.general, time.Unix(2000, 0))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before, tt.Status); diff != "" {
				t.Errorf("the argument was modified: -want +got:\n%s", diff)
			}
		})
	}
}

// TestWhatPodsThatComeDoNotTakeYetIsToldAtOnce has a step scale one Release up and another down while their weights stay, so that no new
// generation says of the traffic that it is another one: a reader of the status before must not let the other go.
func TestWhatPodsThatComeDoNotTakeYetIsToldAtOnce(t *testing.T) {
	yes := []shipper.Condition{{Type: "Operational", Status: "True"}, {Type: "Ready", Status: "True"}}
	one := []string{"web-prod"}
	for sentence, plan := range map[string]rules.Plan{
		"they are let in":                  {Needed: 10, Serving: 5, Enable: []string{"a", "b", "c", "d", "e"}},
		"they start":                       {Needed: 10, Serving: 5, Labelled: 10, NotReady: 5},
		"they are not in endpoints":        {Needed: 10, Serving: 5, Labelled: 10},
		"they are not seen":                {Late: true},
		"others are to go":                 {Needed: 5, Serving: 10, Disable: []string{"a"}},
		"others have not left":             {Needed: 5, Serving: 10},
		"others wait for their successors": {Needed: 5, Serving: 10, Held: 5},
	} {
		tt := &shipper.TrafficTarget{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
		tt.Status = shipper.TrafficTargetStatus{
			ObservedGeneration: 1, Conditions: yes, Clusters: []shipper.ClusterTrafficStatus{{Name: "east", Conditions: yes}},
		}
		outcomes := []Outcome{{want: shipper.ClusterTrafficTarget{Name: "east", Weight: 50}, services: one, plan: plan,
			moved: plan.Moves()}}
		was := tt.DeepCopy()
		tt.Status = status(was, outcomes, nil, time.Unix(2000, 0))
		if got := report.Turned(said(was), said(tt)); !got {
			t.Errorf("%s: it may lag", sentence)
		}
	}
}

// aPod of a Release, with the traffic label when it has traffic.
func aPod(name, release string, phase corev1.PodPhase, ready, labelled bool) corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{shipper.ReleaseLabel: release}},
		Status:     corev1.PodStatus{Phase: phase},
	}
	if ready {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	if labelled {
		pod.Labels[shipper.TrafficStatusLabel] = shipper.TrafficEnabled
	}
	return pod
}

func TestPodsAreTheirReleases(t *testing.T) {
	going := aPod("going", "web-1", corev1.PodRunning, true, true)
	going.DeletionTimestamp = &metav1.Time{}
	odd := aPod("odd", "web-1", corev1.PodRunning, true, false)
	odd.Labels[shipper.TrafficStatusLabel] = "perhaps"
	hook := aPod("hook", "web-1", corev1.PodRunning, true, false)
	hook.Annotations = map[string]string{shipper.HookRunAnnotation: "uid/pre-install/1"}
	ended := aPod("ended", "web-2", corev1.PodSucceeded, false, false)
	ended.Annotations = hook.Annotations
	before := rules.Application{Releases: []rules.Release{{Name: "web-1", Weight: 3}, {Name: "web-2"}}}
	got := withPods(Selectors{App: "web"}, before, []corev1.Pod{
		hook, aPod("a", "web-1", corev1.PodRunning, true, true), aPod("b", "web-1", corev1.PodPending, false, false), odd,
		aPod("other", "web-2", corev1.PodRunning, true, true), aPod("job", "web-1", corev1.PodSucceeded, false, false), going,
		aPod("evicted", "web-2", corev1.PodFailed, false, true), ended, aPod("left", "web-0", corev1.PodRunning, true, true),
	}, []corev1.Pod{
		aPod("stolen", "web-1", corev1.PodRunning, true, true), aPod("stolen too", "", corev1.PodRunning, true, false),
	}, sets.New("a", "other", "stolen"))
	want := rules.Application{
		Serving: 2, AppPods: 5,
		Releases: []rules.Release{
			{Name: "web-1", Weight: 3, HookPods: true, Foreign: true, Pods: []rules.Pod{
				{Name: "a", Ready: true, Labelled: true, Serving: true}, {Name: "b"}, {Name: "odd", Ready: true},
				{Name: "job", Gone: true}, {Name: "going", Gone: true, Ready: true, Labelled: true},
			}},
			{Name: "web-2", Pods: []rules.Pod{
				{Name: "other", Ready: true, Labelled: true, Serving: true}, {Name: "evicted", Gone: true, Labelled: true},
			}},
		},
		Strays: []rules.Pod{{Name: "left", Ready: true, Labelled: true}},
		Foreign: []rules.Pod{
			{Name: "stolen", Ready: true, Labelled: true, Serving: true}, {Name: "stolen too", Ready: true},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if before.Releases[0].Pods != nil {
		t.Error("the argument was modified")
	}
}

func TestServing(t *testing.T) {
	yes, no := true, false
	endpoint := func(ready *bool, kind, name string) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{
			Conditions: discoveryv1.EndpointConditions{Ready: ready}, TargetRef: &corev1.ObjectReference{Kind: kind, Name: name},
		}
	}
	slice := func(service string, endpoints ...discoveryv1.Endpoint) discoveryv1.EndpointSlice {
		return discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{discoveryv1.LabelServiceName: service}},
			Endpoints:  endpoints,
		}
	}
	got := serving([]discoveryv1.EndpointSlice{
		slice("web", endpoint(&yes, "Pod", "a"), endpoint(&no, "Pod", "b"), endpoint(nil, "Pod", "c")),
		slice("web", endpoint(&yes, "Pod", "a"), endpoint(&yes, "Node", "n"), discoveryv1.Endpoint{}),
		slice("other", endpoint(&yes, "Pod", "d")),
	}, []string{"web"})
	if diff := cmp.Diff(sets.New("a", "c"), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
