// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
)

func TestStatus(t *testing.T) {
	then, now := metav1.Unix(1000, 0), metav1.Unix(2000, 0)
	ready := func(status corev1.ConditionStatus, reason, message string, at metav1.Time) []shipper.Condition {
		return []shipper.Condition{{Type: "Ready", Status: status, Reason: reason, Message: message, LastTransitionTime: at}}
	}
	joined := func(since metav1.Time, others []shipper.Condition) []shipper.Condition {
		return append([]shipper.Condition{{Type: "Joined", Status: "True", LastTransitionTime: since}}, others...)
	}
	inService := shipper.ClusterStatus{
		ObservedGeneration: 1, InService: true, KubernetesVersion: "v1.37.1", Conditions: joined(then, ready("True", "", "", then)),
	}
	earlier := inService
	earlier.Conditions = ready("True", "", "", then)
	connecting := fleet.State{Pending: true, Reason: shipper.TargetClusterClientError, Message: "connecting to x"}
	tests := map[string]struct {
		before shipper.ClusterStatus
		state  fleet.State
		want   shipper.ClusterStatus
		events []report.Event
	}{
		"a new cluster": {
			shipper.ClusterStatus{}, connecting,
			shipper.ClusterStatus{
				ObservedGeneration: 2, Conditions: ready("Unknown", "TargetClusterClientError", "connecting to x", now),
			},
			[]report.Event{{
				Type: "Normal", Reason: "ClusterConditionChanged", Action: "UpdateStatus",
				Note: "[] -> [Ready Unknown TargetClusterClientError connecting to x]",
			}},
		},
		"a cluster that was known before Shipper started": {inService, connecting, inService, nil},
		"a cluster that stays": {
			inService, fleet.State{Ready: true, KubernetesVersion: "v1.38.0"},
			shipper.ClusterStatus{
				ObservedGeneration: 2, InService: true, KubernetesVersion: "v1.38.0", Conditions: joined(then, ready("True", "", "", then)),
			},
			nil,
		},
		"a ready cluster whose status the original wrote": {
			earlier, fleet.State{Ready: true, KubernetesVersion: "v1.37.1"},
			shipper.ClusterStatus{
				ObservedGeneration: 2, InService: true, KubernetesVersion: "v1.37.1", Conditions: joined(now, ready("True", "", "", then)),
			},
			[]report.Event{{Type: "Normal", Reason: "ClusterConditionChanged", Action: "UpdateStatus", Note: "[] -> [Joined True]"}},
		},
		"a cluster that was never ready": {
			shipper.ClusterStatus{}, fleet.State{Reason: shipper.SecretMissing, Message: "no Secret"},
			shipper.ClusterStatus{ObservedGeneration: 2, Conditions: ready("False", "SecretMissing", "no Secret", now)},
			[]report.Event{{
				Type: "Warning", Reason: "ClusterConditionChanged", Action: "UpdateStatus",
				Note: "[] -> [Ready False SecretMissing no Secret]",
			}},
		},
		"a cluster that is lost": {
			inService, fleet.State{Reason: shipper.ClusterUnreachable, Message: "no answer"},
			shipper.ClusterStatus{
				ObservedGeneration: 2, KubernetesVersion: "v1.37.1",
				Conditions: joined(then, ready("False", "ClusterUnreachable", "no answer", now)),
			},
			[]report.Event{{
				Type: "Warning", Reason: "ClusterConditionChanged", Action: "UpdateStatus",
				Note: "[Ready True] -> [Ready False ClusterUnreachable no answer]",
			}},
		},
	}
	ending, over := inService, inService
	ending.Conditions = append([]shipper.Condition{{
		Type: "CredentialsValid", Status: "False", Reason: "RenewalFailed", Message: "no", LastTransitionTime: now,
	}}, inService.Conditions...)
	ending.ObservedGeneration, over.ObservedGeneration = 2, 2
	tests["a cluster whose token cannot be renewed"] = struct {
		before shipper.ClusterStatus
		state  fleet.State
		want   shipper.ClusterStatus
		events []report.Event
	}{
		inService, fleet.State{Ready: true, Credentials: fleet.Credentials{NotAfter: 3000, Reason: "RenewalFailed", Message: "no"}}, ending,
		[]report.Event{{
			Type: "Warning", Reason: "ClusterConditionChanged", Action: "UpdateStatus", Note: "[] -> [CredentialsValid False RenewalFailed no]",
		}},
	}
	tests["a cluster that has got credentials that do not end"] = struct {
		before shipper.ClusterStatus
		state  fleet.State
		want   shipper.ClusterStatus
		events []report.Event
	}{ending, fleet.State{Ready: true}, over, []report.Event{{
		Type: "Normal", Reason: "ClusterConditionChanged", Action: "UpdateStatus", Note: "[CredentialsValid False RenewalFailed no] -> []",
	}}}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			was := &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: tc.before}
			is := was.DeepCopy()
			is.Status = status(was, tc.state, nil, nil, time.Unix(2000, 0))
			if diff := cmp.Diff(tc.want, is.Status); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.events, changes(was, is)); diff != "" {
				t.Errorf("events: -want +got:\n%s", diff)
			}
		})
	}
}

// TestAPIVersionsAreThoseOfTheLastConnection: a cluster that is lost is still judged by them.
func TestAPIVersionsAreThoseOfTheLastConnection(t *testing.T) {
	for sentence, tc := range map[string]struct{ was, known, want []string }{
		"a connected cluster":     {[]string{"v1"}, []string{"v1", "apps/v1"}, []string{"v1", "apps/v1"}},
		"a lost cluster":          {[]string{"v1"}, nil, []string{"v1"}},
		"a cluster with too many": {[]string{"v1"}, make([]string, shipper.MaxAPIVersions+1), nil},
	} {
		got := shipper.ClusterStatus{APIVersions: tc.was}
		if setAPIVersions(&got, tc.known); !slices.Equal(got.APIVersions, tc.want) {
			t.Errorf("%s: %q", sentence, got.APIVersions)
		}
	}
}
