// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"shipper.dev/shipper/apis/rules/progress"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestMetricsOfRolloutsThatGoOn(t *testing.T) {
	now := time.Unix(1000, 0)
	at := func(name, reason string, requested int64) client.Object {
		rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		rel.Status.Progress = &shipper.ReleaseProgress{RequestedTime: metav1.Unix(requested, 0)}
		rel.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseAdvancing, Reason: reason}}
		return rel
	}
	scheme := runtime.NewScheme()
	if err := shipper.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		at("a", "Soaking", 400), at("b", "Soaking", 900), at("c", "Failed", 990),
		&shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "of-today"}}).Build()
	m := newMetrics(t.Context(), c, testingclock.NewFakePassiveClock(now))
	due := progress.Decision{
		Progress: &shipper.ReleaseProgress{Next: &shipper.ReleaseNextStep{Time: metav1.NewTime(now.Add(-200 * time.Millisecond))}},
		Move:     &progress.Move{Why: progress.StepDue},
	}
	stored := func(reason string, achieved time.Duration) *shipper.Release {
		rel := &shipper.Release{}
		rel.Status.Conditions = []shipper.Condition{
			{Type: shipper.ReleaseAdvancing, Reason: reason},
			{Type: shipper.ReleaseStrategyExecuted, LastTransitionTime: metav1.NewTime(now.Add(-achieved))},
		}
		return rel
	}
	m.moved(stored(shipper.AdvancingSoaking, time.Hour), due)
	m.moved(stored(shipper.AdvancingSoaking, 0), due)          // it was achieved after it was due
	m.moved(stored(shipper.AdvancingHeldByBlock, 0), due)      // a block was lifted
	m.moved(stored(shipper.AdvancingAwaitingApproval, 0), due) // a user approved it
	m.moved(stored("", 0), progress.Decision{Move: &progress.Move{Why: progress.RolloutFailed}})
	m.moved(stored("", 0), progress.Decision{Abort: true})
	const want = "# HELP shipper_rollout_moves_total What Shipper did to Releases by itself: StepDue went on, RolloutFailed went back, " +
		"Aborted was given up.\n" + `# TYPE shipper_rollout_moves_total counter
shipper_rollout_moves_total{why="Aborted"} 1
shipper_rollout_moves_total{why="RolloutFailed"} 1
shipper_rollout_moves_total{why="StepDue"} 4
# HELP shipper_rollout_oldest_step_seconds Time since the step was requested, of the Release with that reason for which it is longest ago.
# TYPE shipper_rollout_oldest_step_seconds gauge
shipper_rollout_oldest_step_seconds{reason="Failed"} 10
shipper_rollout_oldest_step_seconds{reason="Soaking"} 600
# HELP shipper_rollouts Releases that go on by themselves, by the reason of their condition Advancing.
# TYPE shipper_rollouts gauge
shipper_rollouts{reason="Failed"} 1
shipper_rollouts{reason="Soaking"} 2
`
	err := testutil.CollectAndCompare(m, strings.NewReader(want), "shipper_rollout_moves_total", "shipper_rollouts",
		"shipper_rollout_oldest_step_seconds")
	if err != nil {
		t.Error(err)
	}
	if n := testutil.CollectAndCount(m, "shipper_progress_lag_seconds"); n != 1 {
		t.Errorf("%d series of lags", n)
	}
}
