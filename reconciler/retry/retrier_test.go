// SPDX-License-Identifier: Apache-2.0

package retry_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"shipper.dev/shipper/reconciler/retry"
)

// result is all that a pass returns.
type result struct {
	After  time.Duration
	Failed bool
}

func of(r ctrl.Result, err error) result { return result{r.RequeueAfter, err != nil} }

func TestLimitersSpaceRetries(t *testing.T) {
	type spacing struct{ First, Second, Last time.Duration }
	for name, tc := range map[string]struct {
		limiter workqueue.TypedRateLimiter[string]
		want    spacing
	}{
		"Limiter":        {retry.Limiter[string](), spacing{5 * time.Millisecond, 10 * time.Millisecond, 30 * time.Second}},
		"ClusterLimiter": {retry.ClusterLimiter[string](), spacing{100 * time.Millisecond, 200 * time.Millisecond, 30 * time.Second}},
		"SlowLimiter":    {retry.SlowLimiter[string](), spacing{time.Second, 2 * time.Second, 5 * time.Minute}},
	} {
		got := spacing{First: tc.limiter.When("a"), Second: tc.limiter.When("a")}
		for range 20 {
			got.Last = tc.limiter.When("a")
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestResultsInTheManagementCluster(t *testing.T) {
	const ms = time.Millisecond
	retries := retry.NewRetrier(retry.Limiter[string]())
	transient := errors.New("x")
	for _, step := range []struct {
		sentence string
		met      []error
		want     result
	}{
		{"an error that may pass is returned", []error{nil, invalid, conflict, transient}, result{0, true}},
		{"joined with a conflict too", []error{errors.Join(conflict, transient)}, result{0, true}},
		{"a conflict is none", []error{nil, conflict}, result{5 * ms, false}},
		{"a second one is retried later", []error{conflict}, result{10 * ms, false}},
		{"a third one later still", []error{conflict}, result{20 * ms, false}},
		{"an error that needs a change is in a status", []error{invalid}, result{}},
		{"after which delays begin again", []error{conflict}, result{5 * ms, false}},
		{"nothing is wrong", []error{nil}, result{}},
		{"after which delays begin again, too", []error{conflict}, result{5 * ms, false}},
	} {
		if diff := cmp.Diff(step.want, of(retries.Result("a", step.met...))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", step.sentence, diff)
		}
	}
}

func TestResultsInApplicationClusters(t *testing.T) {
	const first = 100 * time.Millisecond
	retries := retry.NewRetrier(retry.ClusterLimiter[string]())
	for _, step := range []struct {
		sentence string
		met      []error
		want     time.Duration
	}{
		{"nothing wrong", nil, 0},
		{"an event will come", []error{lost{}}, 0},
		{"no event will come", []error{lost{}, forbidden("x")}, 2 * time.Minute},
		{"it may pass", []error{forbidden("x"), refused}, first},
		{"it may pass, a second time", []error{refused}, 2 * first},
		{"it passed", nil, 0},
		{"and came again", []error{refused}, first},
		{"a conflict is retried like it", []error{conflict}, 2 * first},
		{"joined with a refusal, too", []error{errors.Join(forbidden("x"), conflict)}, 4 * first},
		{"the cluster is removed", []error{lost{}}, 0},
		{"and joined again", []error{conflict}, first},
		{"a refusal is looked at later", []error{forbidden("x")}, 2 * time.Minute},
		{"and is no failure to count", []error{conflict}, first},
	} {
		got := of(retries.ResultInCluster(t.Context(), "a", step.met...))
		if diff := cmp.Diff(result{After: step.want}, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", step.sentence, diff)
		}
	}
}

func TestWritesToTheManagementClusterAreRetriedAfterConflicts(t *testing.T) {
	const first = 100 * time.Millisecond
	retries := retry.NewRetrier(retry.ClusterLimiter[string]())
	for _, step := range []struct {
		sentence string
		err      error
		want     result
	}{
		{"a conflict is no error", fmt.Errorf("x: %w", conflict), result{first, false}},
		{"many joined are none", errors.Join(conflict, conflict), result{2 * first, false}},
		{"a refusal is one", forbidden("x"), result{0, true}},
		{"so it is when joined with a conflict", errors.Join(conflict, forbidden("x")), result{0, true}},
		{"and when a conflict is joined with it", errors.Join(forbidden("x"), conflict), result{0, true}},
		{"not found is one", apierrors.NewNotFound(rels, "x"), result{0, true}},
		{"delays go on", conflict, result{4 * first, false}},
		{"a write succeeds", nil, result{}},
		{"delays begin again", conflict, result{first, false}},
	} {
		if diff := cmp.Diff(step.want, of(retries.Persisted("a", step.err))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", step.sentence, diff)
		}
	}
}

func TestAStatusReportsConflictsAfterFivePassesInARow(t *testing.T) {
	retries := retry.NewRetrier(retry.ClusterLimiter[string]())
	var got []bool
	for range 6 {
		got = append(got, retries.Overtaken("x", conflict, conflict))
		retries.Again("x")
	}
	got = append(got, retries.Overtaken("y", conflict), retries.Overtaken("y", conflict, refused), retries.Overtaken("y"),
		retries.Overtaken("y", errors.Join(conflict, forbidden("no"))), retries.Overtaken("y", errors.Join(conflict, conflict)))
	if diff := cmp.Diff([]bool{true, true, true, true, true, false, true, false, false, false, true}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
