// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rules "shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

var now = time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)

func ago(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }

// example is a Shipyard with staging and production.
func example() *shipper.Shipyard {
	return &shipper.Shipyard{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop", UID: "sy"},
		Spec: shipper.ShipyardSpec{Services: []string{"web", "api"}, Stages: []shipper.Stage{
			{Name: "staging", Sequences: []shipper.Sequence{{Name: "delivery", Tasks: []shipper.Task{
				{Name: "deployment"}, {Name: "test"}, {Name: "test"}, {Name: "release"},
			}}}},
			{
				Name: "production", Namespace: "shop-prod", Requires: []shipper.StageRequirement{{Stage: "staging", Soak: "1h"}},
				Sequences: []shipper.Sequence{
					{
						Name: "delivery", TriggeredOn: []shipper.Trigger{{Event: "staging.delivery.finished"}},
						Tasks: []shipper.Task{
							{Name: "approval", Properties: shipper.FreeForm{"approvals": int64(2), "expires": "4h"}}, {Name: "deployment"}, {Name: "release"},
						},
					},
					{
						Name: "rollback", Tasks: []shipper.Task{{Name: "rollback"}},
						TriggeredOn: []shipper.Trigger{{
							Event: "production.delivery.finished", Selector: &shipper.TriggerSelector{Match: map[string]string{"result": "fail"}},
						}},
					},
				},
			},
		}},
	}
}

// running is a run of a stage of the example, created some time ago.
func running(name, stage, sequence string, created time.Duration) *shipper.SequenceRun {
	of := example()
	run := &shipper.SequenceRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: *ago(created),
			Labels: map[string]string{shipper.ShipyardLabel: "shop"},
		},
		Spec: shipper.SequenceRunSpec{
			Shipyard: "shop", Stage: stage, Sequence: sequence, Service: "web", RequestedBy: shipper.ApprovalUser{Username: "ann"},
		},
	}
	run.Status.Resolved = rules.Resolved(rules.Snapshot(of), stage, sequence)
	run.Status.Resolved.Revision, run.Status.Resolved.Context = rules.RevisionOf(of), "c1"
	run.Status.Resolved.Version = shipper.RunVersion{Name: "nginx", Version: "1.4.2"}
	does(run, shipper.RunRunning, "")
	return run
}

// does sets what an unfinished run does.
func does(run *shipper.SequenceRun, reason, message string) {
	run.Status.Conditions = shipper.SetCondition(run.Status.Conditions, shipper.Condition{
		Type: shipper.RunFinished, Status: corev1.ConditionFalse, Reason: reason, Message: message,
	}, *ago(0))
}

// ends finishes a run.
func ends(run *shipper.SequenceRun, result shipper.Result, completion shipper.Completion, reason, message string) *shipper.SequenceRun {
	run.Status.Result, run.Status.Completion, run.Status.Message, run.Status.FinishTime = result, completion, message, ago(time.Minute)
	run.Status.Conditions = shipper.SetCondition(run.Status.Conditions, shipper.Condition{
		Type: shipper.RunFinished, Status: corev1.ConditionTrue, Reason: reason, Message: message,
	}, *ago(0))
	return run
}

func values(runs ...*shipper.SequenceRun) []shipper.SequenceRun {
	var out []shipper.SequenceRun
	for _, run := range runs {
		out = append(out, *run)
	}
	return out
}

// golden compares a text with a file of testdata. UPDATE_GOLDEN=1 writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
