// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/credential"
)

// texts are findings as level and what.
func texts(findings []Finding) []string {
	var out []string
	for _, f := range findings {
		if f.What == "" || f.Why == "" || f.Do == "" {
			out = append(out, "INCOMPLETE")
		}
		out = append(out, string(f.Level)+": "+f.What)
	}
	return out
}

func TestClusterFindings(t *testing.T) {
	status := func(status corev1.ConditionStatus, reason, message string) shipper.ClusterStatus {
		return shipper.ClusterStatus{ObservedGeneration: 2, Conditions: []shipper.Condition{{
			Type: shipper.ClusterReady, Status: status, Reason: reason, Message: message,
		}}}
	}
	ready := status(corev1.ConditionTrue, "", "")
	stale := *ready.DeepCopy()
	stale.ObservedGeneration = 1
	failure := func(reason string) *fleet.Error { return &fleet.Error{Cluster: "eu", Reason: reason, Message: "why"} }
	const unseen = "warning: Shipper has not looked at it since it was changed last"
	for sentence, tc := range map[string]struct {
		status shipper.ClusterStatus
		seen   clusterState
		want   []string
	}{
		"all is well":   {ready, clusterState{version: "v1.27.0"}, nil},
		"it is too old": {ready, clusterState{version: "v1.26.9"}, []string{"BROKEN: its API server is v1.26.9, older than 1.27"}},
		"what it says is nothing": {ready, clusterState{version: "new"}, []string{
			`warning: its API server says to be "new", which is no version`,
		}},
		"no condition yet":         {shipper.ClusterStatus{}, clusterState{version: "v1.37.1"}, []string{unseen}},
		"it was changed meanwhile": {stale, clusterState{version: "v1.37.1"}, []string{unseen}},
		"condition unknown":        {status(corev1.ConditionUnknown, "", ""), clusterState{version: "v1.37.1"}, []string{unseen}},
		"rights are missing": {
			ready, clusterState{version: "v1.37.1", missing: []right{
				{group: "apps", resource: "deployments", verb: "patch"}, {resource: "pods", verb: "list"},
				{group: "apps", resource: "deployments", verb: "create"},
			}}, []string{"BROKEN: Shipper's account may not:\ncreate,patch deployments.apps\nlist pods"},
		},
		"the right to Nodes is missing: placements alone need it": {
			status(corev1.ConditionFalse, shipper.ClusterUnreachable, "no answer"), clusterState{version: "v1.37.1", missing: []right{
				{resource: "nodes", verb: "list"}, {resource: "nodes", verb: "watch"},
			}}, []string{
				"BROKEN: it answers here, but Shipper says ClusterUnreachable: no answer",
				"warning: Shipper's account may not:\nlist,watch nodes",
			},
		},
		"what Shipper cannot reach is reached from here": {
			status(corev1.ConditionFalse, shipper.ClusterUnreachable, "no answer"), clusterState{version: "v1.37.1"},
			[]string{"BROKEN: it answers here, but Shipper says ClusterUnreachable: no answer"},
		},
		"a known fault is reported once": {
			status(corev1.ConditionFalse, shipper.CredentialsRefused, "too few rights"),
			clusterState{version: "v1.37.1", missing: []right{{resource: "pods", verb: "list"}}},
			[]string{"BROKEN: Shipper's account may not:\nlist pods"},
		},
		"neither side reaches it": {
			status(corev1.ConditionFalse, "x", "y"), clusterState{failure: failure(shipper.ClusterUnreachable)}, []string{"BROKEN: why"},
		},
		"Shipper reaches it, and this machine not": {ready, clusterState{failure: failure(shipper.ClusterUnreachable)}, []string{"warning: why"}},
		"Shipper has reached it where it was once": {stale, clusterState{failure: failure(shipper.ClusterUnreachable)}, []string{"BROKEN: why"}},
		"refused here, ready for Shipper":          {ready, clusterState{failure: failure(shipper.CredentialsRefused)}, []string{"BROKEN: why"}},
		"no URL of an API server": {
			ready, clusterState{failure: failure(shipper.TargetClusterClientError)}, []string{"BROKEN: why"},
		},
		"its Secret is not what it should be": {ready, clusterState{failure: failure(shipper.SecretInvalid)}, []string{"BROKEN: why"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			tc.seen.cluster = &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu", Generation: 2}, Status: tc.status}
			if diff := cmp.Diff(tc.want, texts(tc.seen.findings())); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	going := clusterState{cluster: &shipper.Cluster{}, version: "v1.37.1"}
	going.cluster.DeletionTimestamp = &metav1.Time{Time: time.Unix(1e9, 0)}
	if diff := cmp.Diff([]string{"warning: it is being deleted", unseen}, texts(going.findings())); diff != "" {
		t.Errorf("one that is being deleted (-want +got)\n%s", diff)
	}
}

func TestEndOfCredentials(t *testing.T) {
	born := time.Unix(1_800_000_000, 0).UTC() // 2027-01-15T08:00:00Z
	const day = 24 * time.Hour
	renewed := credential.Credential{Kind: credential.Token, NotBefore: born, NotAfter: born.Add(day), Life: day}
	plain, stuck := renewed, renewed
	plain.Life, plain.Kind = 0, credential.Certificate
	stuck.Life, stuck.Problem = 0, "it is bound to nothing"
	for sentence, tc := range map[string]struct {
		c    credential.Credential
		at   time.Duration
		want []string
	}{
		"new":            {renewed, 0, nil},
		"renewal is due": {renewed, 7 * time.Hour, nil},
		"renewal was due long ago": {renewed, 12 * time.Hour, []string{
			"warning: its token ends at 2027-01-16T08:00:00Z and was to be renewed at 2027-01-15T14:00:00Z",
		}},
		"not renewed, with time left": {plain, 15 * time.Hour, nil},
		"not renewed": {plain, 16 * time.Hour, []string{
			"warning: its client certificate ends at 2027-01-16T08:00:00Z, and Shipper does not renew it",
		}},
		"it was meant to be renewed and cannot be": {stuck, 0, []string{"warning: its token cannot be renewed: it is bound to nothing"}},
		"it does not end":                          {credential.Credential{Kind: credential.Token}, 0, nil},
	} {
		if diff := cmp.Diff(tc.want, texts(endOf(tc.c, born.Add(tc.at)))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", sentence, diff)
		}
	}
}
