// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// deployed is a Deployment that asks for replicas and has available ones.
func deployed(replicas, available int32, conditions ...appsv1.DeploymentCondition) appsv1.Deployment {
	return appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 2, AvailableReplicas: available, Conditions: conditions},
	}
}

// paused is a Deployment that is paused, with as many Pods, one of which is not available.
func paused(desired, replicas int32) appsv1.Deployment {
	d := deployed(desired, replicas-1)
	d.Namespace, d.Spec.Paused, d.Status.Replicas = "shop", true, replicas
	return d
}

func TestReady(t *testing.T) {
	want := shipper.ClusterCapacityTarget{Name: "west", Percent: 100, TotalReplicaCount: 3}
	none := shipper.ClusterCapacityTarget{Name: "west", Percent: 100}
	unseen := deployed(3, 3)
	unseen.Status.ObservedGeneration = 1
	marked := deployed(3, 3)
	marked.Status.ObservedGeneration, marked.Status.Replicas = 1, 3
	unset := deployed(1, 1)
	unset.Spec.Replicas = nil
	stopped := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Message: "deadline exceeded",
	}
	refused := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "quota exceeded",
	}
	sad := []corev1.Pod{aPod("a", notReady, waiting("app", "ImagePullBackOff"))}
	tests := map[string]struct {
		sight                   observation
		status, reason, message string
	}{
		"all available": {observation{deployments: []appsv1.Deployment{deployed(3, 3)}}, "True", "", ""},
		"no Deployment": {
			observation{}, "False", shipper.MissingDeployment, "expected one Deployment of this release, found 0",
		},
		"no Deployment where all of it is no pods": {observation{want: none}, "True", "", ""},
		"a Deployment where all of it is no pods":  {observation{want: none, deployments: []appsv1.Deployment{deployed(0, 0)}}, "True", "", ""},
		"two Deployments where all of it is no pods": {
			observation{want: none, deployments: []appsv1.Deployment{deployed(0, 0), deployed(0, 0)}},
			"False", shipper.MissingDeployment, "expected one Deployment of this release, found 2",
		},
		"two Deployments": {
			observation{deployments: []appsv1.Deployment{deployed(3, 3), deployed(3, 3)}},
			"False", shipper.MissingDeployment, "expected one Deployment of this release, found 2",
		},
		"pods that serve are kept": {
			observation{deployments: []appsv1.Deployment{deployed(4, 4)}, keptServing: true},
			"False", shipper.InProgress, "4 pods stay instead of 3 until other releases serve in place of those in traffic",
		},
		"scaled just now": {
			observation{deployments: []appsv1.Deployment{deployed(0, 0)}, scaled: true},
			"False", shipper.InProgress, "scaling from 0 to 3 pods",
		},
		"scaled from the default": {
			observation{deployments: []appsv1.Deployment{unset}, scaled: true},
			"False", shipper.InProgress, "scaling from 1 to 3 pods",
		},
		"its controller has not seen the change": {
			observation{deployments: []appsv1.Deployment{unseen}},
			"False", shipper.InProgress, "the cluster has not seen the change to 3 pods yet",
		},
		"its controller has not seen a change that leaves what was ready as it was": {
			observation{deployments: []appsv1.Deployment{marked}, wasReady: true}, "True", "", "",
		},
		"its controller has not seen a change after which pods went": {
			observation{deployments: []appsv1.Deployment{unseen}, wasReady: true},
			"False", shipper.InProgress, "the cluster has not seen the change to 3 pods yet",
		},
		"pods are missing and none is sad": {
			observation{deployments: []appsv1.Deployment{deployed(3, 2)}, pods: []corev1.Pod{aPod("a", isReady)}},
			"False", shipper.InProgress, "2 of 3 pods are available",
		},
		"more than asked for": {
			observation{deployments: []appsv1.Deployment{deployed(3, 4)}}, "False", shipper.InProgress, "4 of 3 pods are available",
		},
		"pods are sad": {
			observation{deployments: []appsv1.Deployment{deployed(3, 2)}, pods: sad},
			"False", shipper.PodsNotReady, `1/3: 1x"app" containers with [ImagePullBackOff]`,
		},
		"the Deployment is stuck": {
			observation{deployments: []appsv1.Deployment{deployed(3, 2, stopped)}, pods: sad},
			"False", shipper.DeploymentStuck, "deadline exceeded",
		},
		"it is paused": {
			observation{deployments: []appsv1.Deployment{paused(3, 2)}}, "False", shipper.DeploymentStuck,
			"the Deployment is paused, so Kubernetes creates no Pods of it: kubectl -n shop rollout resume deployment web, in this cluster; " +
				"and leave spec.paused out of the chart, if it has it",
		},
		"it is paused, and its pods are there and sad": {
			observation{deployments: []appsv1.Deployment{paused(3, 3)}, pods: sad},
			"False", shipper.PodsNotReady, `1/3: 1x"app" containers with [ImagePullBackOff]`,
		},
		"its pods are refused": {
			observation{deployments: []appsv1.Deployment{deployed(3, 2, refused)}},
			"False", shipper.DeploymentStuck, "quota exceeded",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.sight.want.Name == "" {
				tc.sight.want = want
			}
			expected := shipper.Condition{
				Type: shipper.TargetReady, Status: corev1.ConditionStatus(tc.status), Reason: tc.reason, Message: tc.message,
			}
			if diff := cmp.Diff(expected, ready(tc.sight)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestScale(t *testing.T) {
	want := shipper.ClusterCapacityTarget{Percent: 50, TotalReplicaCount: 5}
	type result struct {
		Replicas int32
		Needed   bool
	}
	tests := map[string]struct {
		sight observation
		want  result
	}{
		"what differs is scaled":          {observation{deployments: []appsv1.Deployment{deployed(0, 0)}}, result{3, true}},
		"what is so already is not":       {observation{deployments: []appsv1.Deployment{deployed(3, 0)}}, result{3, false}},
		"nothing to scale":                {observation{}, result{}},
		"nothing is known of the cluster": {observation{err: errors.New("x")}, result{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.sight.want = want
			var got result
			got.Replicas, got.Needed = tc.sight.scale()
			if diff := cmp.Diff(tc.want, got); diff != "" {
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
	good := func(at metav1.Time) []shipper.Condition {
		return []shipper.Condition{
			condition("Operational", "True", "", "", at), condition("Ready", "True", "", "", at),
		}
	}
	before := shipper.CapacityTargetStatus{
		ObservedGeneration: 1, Conditions: good(then),
		Clusters: []shipper.ClusterCapacityStatus{
			{Name: "east", AvailableReplicas: 1, AchievedPercent: 50, Conditions: good(then)},
		},
	}
	in := func(name string) shipper.ClusterCapacityTarget {
		return shipper.ClusterCapacityTarget{Name: name, Percent: 100, TotalReplicaCount: 2}
	}
	reports := []shipper.ClusterCapacityReport{{Owner: shipper.ClusterCapacityReportOwner{Name: "web"}}}
	lost := &fleet.Error{Cluster: "east", Reason: shipper.ClusterUnreachable, Message: "no answer"}
	connecting := &fleet.Error{
		Cluster: "east", Reason: shipper.TargetClusterClientError, Message: "connecting", Pending: true,
	}
	untried := &fleet.Error{Cluster: "east", Reason: shipper.CredentialsRefused, Message: "too few rights", Untried: true}
	type clusters = []shipper.ClusterCapacityStatus
	tests := map[string]struct {
		sights []Outcome
		want   shipper.CapacityTargetStatus
	}{
		"all is well, in the order of names": {
			[]Outcome{
				outcome(observation{want: in("west"), deployments: []appsv1.Deployment{deployed(2, 2)}}),
				outcome(observation{want: in("east"), deployments: []appsv1.Deployment{deployed(2, 2)}}),
			},
			shipper.CapacityTargetStatus{ObservedGeneration: 2, Conditions: good(then), Clusters: clusters{
				{Name: "east", AvailableReplicas: 2, AchievedPercent: 100, Conditions: good(then), Reports: reports},
				{Name: "west", AvailableReplicas: 2, AchievedPercent: 100, Conditions: good(now), Reports: reports},
			}},
		},
		"a cluster that is lost keeps its numbers": {
			[]Outcome{{want: in("east"), err: lost}},
			shipper.CapacityTargetStatus{
				ObservedGeneration: 2,
				Clusters: []shipper.ClusterCapacityStatus{{
					Name: "east", AvailableReplicas: 1, AchievedPercent: 50,
					Conditions: []shipper.Condition{
						condition("Operational", "False", "ClusterUnreachable", "no answer", now),
						condition("Ready", "Unknown", "ClusterUnreachable", "no answer", now),
					},
				}},
				Conditions: []shipper.Condition{
					condition("Operational", "False", "ClustersNotOperational", "east: ClusterUnreachable no answer", now),
					condition("Ready", "False", "ClustersNotReady", "east: ClusterUnreachable no answer", now),
				},
			},
		},
		"a cluster that is being connected to is as it was, and the new generation is not answered yet": {
			[]Outcome{{want: in("east"), err: connecting}}, before,
		},
		"a cluster that this installation has no credentials for yet is as another installation left it": {
			[]Outcome{{want: in("east"), err: untried}}, before,
		},
		"a new cluster that this installation has no credentials for reports why": {
			[]Outcome{{want: in("north"), err: untried}},
			shipper.CapacityTargetStatus{
				ObservedGeneration: 2,
				Clusters: []shipper.ClusterCapacityStatus{{Name: "north", Conditions: []shipper.Condition{
					condition("Operational", "False", "CredentialsRefused", "too few rights", now),
					condition("Ready", "Unknown", "CredentialsRefused", "too few rights", now),
				}}},
				Conditions: []shipper.Condition{
					condition("Operational", "False", "ClustersNotOperational", "north: CredentialsRefused too few rights", now),
					condition("Ready", "False", "ClustersNotReady", "north: CredentialsRefused too few rights", now),
				},
			},
		},
		"a new cluster that is being connected to is not known": {
			[]Outcome{{want: in("north"), err: connecting}},
			shipper.CapacityTargetStatus{
				ObservedGeneration: 1,
				Clusters: []shipper.ClusterCapacityStatus{{Name: "north", Conditions: []shipper.Condition{
					condition("Operational", "Unknown", "TargetClusterClientError", "connecting", now),
					condition("Ready", "Unknown", "TargetClusterClientError", "connecting", now),
				}}},
				Conditions: []shipper.Condition{
					condition("Operational", "False", "ClustersNotOperational", "north: TargetClusterClientError connecting", now),
					condition("Ready", "False", "ClustersNotReady", "north: TargetClusterClientError connecting", now),
				},
			},
		},
		"an error of the cluster's API": {
			[]Outcome{{want: in("east"), err: errors.New("it broke")}},
			shipper.CapacityTargetStatus{
				ObservedGeneration: 2,
				Clusters: []shipper.ClusterCapacityStatus{{
					Name: "east", AvailableReplicas: 1, AchievedPercent: 50,
					Conditions: []shipper.Condition{
						condition("Operational", "True", "", "", then), condition("Ready", "False", "InternalError", "it broke", now),
					},
				}},
				Conditions: []shipper.Condition{
					condition("Operational", "True", "", "", then),
					condition("Ready", "False", "ClustersNotReady", "east: InternalError it broke", now),
				},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ct := &shipper.CapacityTarget{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: *before.DeepCopy()}
			if diff := cmp.Diff(tc.want, status(ct, tc.sights, time.Unix(2000, 0))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before, ct.Status); diff != "" {
				t.Errorf("the argument was modified: -want +got:\n%s", diff)
			}
		})
	}
}
