// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/member/inplace"
)

// part is a Deployment of so many Pods at full capacity.
func part(name string, of, replicas, available int32, conditions ...appsv1.DeploymentCondition) observation {
	d := deployed(replicas, available, conditions...)
	d.Name, d.Annotations = name, map[string]string{shipper.ReplicasAnnotation: strconv.Itoa(int(of))}
	return observation{
		deployments: []appsv1.Deployment{d},
		want:        shipper.ClusterCapacityTarget{Name: "west", Percent: 50, TotalReplicaCount: of},
	}
}

func TestAReleaseOfSeveralWorkloads(t *testing.T) {
	stopped := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Message: "deadline exceeded"}
	db := func(have int32, lacks string) inplace.Share {
		s := inplace.Share{Kind: "StatefulSet", Name: "db", Full: 4, Have: have}
		if lacks != "" {
			s.Reason, s.Message = shipper.InProgress, lacks
		}
		return s
	}
	scaled := part("web", 4, 0, 0)
	scaled.scaled = true
	pending := part("api", 3, 2, 1)
	pending.pods = []corev1.Pod{aPod("api-1", notReady, waiting("app", "ImagePullBackOff"))}
	type result struct {
		Available, Achieved     int32
		Status, Reason, Message string
		Owners                  string
	}
	tests := map[string]struct {
		total  int32
		parts  []observation
		shares []inplace.Share
		want   result
	}{
		"all have their share of each": {
			7, []observation{part("api", 3, 2, 2), part("web", 4, 2, 2)}, nil,
			result{4, 50, "True", "", "", "web api "},
		},
		"one of three lacks a pod, and two do not": {
			11, []observation{pending, part("web", 4, 2, 2)}, []inplace.Share{db(2, "")},
			result{5, 34, "False", shipper.PodsNotReady, `Deployment "api": 1/2: 1x"app" containers with [ImagePullBackOff]`, "api db web "},
		},
		"one that is stuck is named before one that is being scaled": {
			7, []observation{part("api", 3, 2, 1, stopped), scaled}, nil,
			result{1, 0, "False", shipper.DeploymentStuck,
				`Deployment "api": deadline exceeded; Deployment "web": scaling from 0 to 2 pods`, "api web "},
		},
		"a workload in place lacks a pod": {
			8, []observation{part("web", 4, 2, 2)}, []inplace.Share{db(1, "1 of 4")},
			result{3, 25, "False", shipper.InProgress, `StatefulSet "db": 1 of 4`, "db web "},
		},
		"all that another release leaves of a workload in place is there": {
			8, []observation{part("web", 4, 2, 2)}, []inplace.Share{db(1, "")},
			result{3, 50, "True", "", "", "db web "},
		},
		"the only workload is not named": {
			4, []observation{part("web", 4, 2, 1)}, nil,
			result{1, 25, "False", shipper.InProgress, "1 of 2 pods are available", "web "},
		},
		"a Deployment is not there yet": {
			9, []observation{part("web", 4, 2, 2)}, nil,
			result{2, 50, "False", shipper.MissingDeployment, "Deployments of this release are missing: api", "web "},
		},
		"nothing is there": {
			9, nil, nil, result{0, 0, "False", shipper.MissingDeployment, "nothing of this release is installed yet", ""},
		},
		"the chart has fewer Pods in this cluster than in others": {
			5, []observation{part("web", 4, 2, 2)}, nil, result{2, 50, "True", "", "", "web "},
		},
		"nothing is to be": {0, nil, nil, result{0, 100, "True", "", "", ""}},
		"a DaemonSet is no Pod": {
			0, nil, []inplace.Share{{Kind: "DaemonSet", Name: "agent"}}, result{0, 100, "True", "", "", "agent "},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			seen := observations{want: shipper.ClusterCapacityTarget{Name: "west", Percent: 50, TotalReplicaCount: tc.total}, parts: tc.parts}
			stake := &inplace.Stake{Shares: tc.shares, Installed: len(tc.parts)+len(tc.shares) > 0}
			if strings.HasPrefix(tc.want.Message, "Deployments") {
				stake.Deployments = []string{"web", "api"}
			}
			out := seen.outcome(stake)
			s := clusterStatus(shipper.ClusterCapacityStatus{}, out, metav1.Time{})
			got := result{Available: s.AvailableReplicas, Achieved: s.AchievedPercent}
			ready := shipper.FindCondition(s.Conditions, shipper.TargetReady)
			got.Status, got.Reason, got.Message = string(ready.Status), ready.Reason, ready.Message
			for _, r := range s.Reports {
				got.Owners += r.Owner.Name + " "
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEachWorkloadGetsItsOwnShare(t *testing.T) {
	for of, want := range map[int32]int32{1: 1, 3: 2, 4: 2, 0: 0} {
		one := part("web", of, 0, 0)
		if got, needed := one.scale(); got != want || needed != (want > 0) {
			t.Errorf("of %d: %d, needed %t; want %d", of, got, needed, want)
		}
	}
	found := part("web", 4, 3, 3)
	found.want.AsFound = true
	if _, needed := found.scale(); needed {
		t.Error("a Deployment that stays as it was found is scaled")
	}
}

func TestAnErrorOfAWorkloadIsOneOfTheRelease(t *testing.T) {
	broken := part("web", 4, 2, 2)
	broken.err = errors.New("refused")
	seen := observations{parts: []observation{broken}}
	if out := seen.outcome(&inplace.Stake{Err: errors.New("immutable")}); out.err == nil || out.err.Error() != "immutable\nrefused" {
		t.Errorf("err = %v", out.err)
	}
}
