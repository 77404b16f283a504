// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestOutcomesOfTests(t *testing.T) {
	unready := []shipper.Condition{{Type: shipper.TargetReady, Status: corev1.ConditionFalse, Message: "it does not answer"}}
	run := func(request string, phase shipper.HookPhase, message string) *shipper.TestRun {
		return &shipper.TestRun{Request: request, Phase: phase, Message: message}
	}
	tests := map[string]struct {
		clusters []shipper.ClusterInstallationStatus
		want     []testResult
		over     bool
	}{
		"nothing is known of a cluster": {
			nil, []testResult{{Cluster: "east", Tests: "Waiting"}, {Cluster: "west", Tests: "Waiting"}}, false,
		},
		"one runs, and one has those of an earlier request": {
			[]shipper.ClusterInstallationStatus{
				{Name: "east", Test: run("now", shipper.HookRunning, "hook test: …")},
				{Name: "west", Test: run("before", shipper.HookSucceeded, ""), Conditions: unready},
			},
			[]testResult{{"east", "Running", "hook test: …"}, {"west", "Waiting", "it does not answer"}}, false,
		},
		"all have ended": {
			[]shipper.ClusterInstallationStatus{
				{Name: "west", Test: run("now", shipper.HookSucceeded, "")}, {Name: "east", Test: run("now", shipper.HookHasFailed, "why")},
				{Name: "left", Test: run("now", shipper.HookRunning, "")},
			},
			[]testResult{{"east", "Failed", "why"}, {"west", "Succeeded", ""}}, true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			it := &shipper.InstallationTarget{Spec: shipper.InstallationTargetSpec{Clusters: []string{"west", "east"}}}
			it.Status.Clusters = tc.clusters
			got, over := outcomes(it, "now")
			if diff := cmp.Diff(tc.want, got); diff != "" || over != tc.over {
				t.Errorf("over is %t, want %t; -want +got:\n%s", over, tc.over, diff)
			}
		})
	}
}
