// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestAWaitEndsWithTheErrorThatItFinds at once: nothing changes any more in a rollout that has failed.
func TestAWaitEndsWithTheErrorThatItFinds(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := shipper.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	o := exampleObserved()
	s := &show{
		options: &options{clock: clocktesting.NewFakePassiveClock(now)}, key: client.ObjectKeyFromObject(o.app), out: &bytes.Buffer{},
		client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(o.app).Build(),
	}
	failed := errors.New("release web-1 has failed")
	done, err := s.followFor(t.Context(), 0, func(*observed) (bool, error) { return false, failed })
	if done || !errors.Is(err, failed) {
		t.Errorf("done %t, error %v", done, err)
	}
}

func TestAFailedRolloutIsNotToldToAdvance(t *testing.T) {
	o := exampleObserved()
	rel := o.releases[1]
	rel.Status.Strategy.State.WaitingForCommand, rel.Status.Strategy.Conditions = shipper.StrategyStateTrue, nil
	check := func(sentence, want string) {
		t.Helper()
		if got := waitsFor(rel); len(got) != 1 || got[0] != want {
			t.Errorf("%s: waits for %q", sentence, got)
		}
	}
	check("before", "a command: shipperctl rollout advance, or another targetStep")
	rel.Status.Progress = &shipper.ReleaseProgress{}
	rel.Status.Conditions = []shipper.Condition{
		{Type: shipper.ReleaseFailed, Status: corev1.ConditionTrue, Message: "check errors: 5 % > 1 %"},
		{Type: shipper.ReleaseAdvancing, Reason: shipper.AdvancingHeldAfterGoingBack, Message: "it retreated to step 0"},
	}
	check("after a check has failed", "a user, since it has failed: `shipperctl rollout abort` gives the release up, "+
		"`shipperctl rollout advance` tries it again")
}

func TestNothingIsCompleteBeforeTheLastEditIsObserved(t *testing.T) {
	o := exampleObserved()
	rel := o.releases[1]
	rel.Status.Conditions = o.releases[0].Status.Conditions // complete
	if p := viewOf(o, now); !p.Complete {
		t.Fatal("the rollout is not complete before the edit")
	}
	o.app.Generation = o.app.Status.ObservedGeneration + 1
	edited := metav1.NewTime(now)
	o.app.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kubectl", Time: &edited}, {Manager: "shipper", Subresource: "status", Time: &metav1.Time{Time: now.Add(time.Hour)}},
	}
	for after, want := range map[time.Duration]string{
		time.Second: "the last edit of the application to be observed",
		2 * time.Minute: "the last edit of the application to be observed; it was made 2m ago: the reconciler does not answer, " +
			"`shipperctl doctor` says why",
	} {
		p := viewOf(o, now.Add(after))
		if p.Complete || p.over() || len(p.Waiting) != 1 || p.Waiting[0] != want {
			t.Errorf("after %s: complete %t, over %t, waits for %q", after, p.Complete, p.over(), p.Waiting)
		}
	}
}

// TestASilentReconcilerIsNamed also when a Release was moved, and before there is any.
func TestASilentReconcilerIsNamed(t *testing.T) {
	const silent = "; it was made 4m ago: the reconciler does not answer, `shipperctl doctor` says why"
	for sentence, tc := range map[string]struct {
		edit func(o *observed)
		want string
	}{
		"a Release was moved": {func(o *observed) { o.releases[1].Generation++ }, "what was asked for last to begin" + silent},
		"a Release is new": {
			func(o *observed) { o.releases[1].Generation, o.releases[1].Status.Strategy = 1, nil }, "clusters to be chosen" + silent,
		},
		"there is no Release": {func(o *observed) {
			o.releases, o.app.Generation = nil, 1
			o.app.CreationTimestamp = metav1.NewTime(now.Add(-4 * time.Minute))
		}, "the last edit of the application to be observed" + silent},
	} {
		o := exampleObserved()
		tc.edit(o)
		pending, err := awaited(o, asked, now)
		if got := viewOf(o, now).Waiting; err != nil || len(got) != 1 || got[0] != tc.want || len(pending) != 1 || pending[0] != tc.want {
			t.Errorf("%s: waits for %q, --wait for %q, %v", sentence, got, pending, err)
		}
		if got := viewOf(o, now).stateText(); !strings.Contains(got, silent) {
			t.Errorf("%s: the list says %q", sentence, got)
		}
	}
}
