// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"errors"
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
		{Type: shipper.ReleaseAdvancing, Reason: shipper.AdvancingHeldAfterGoingBack, Message: "it went back to step 0"},
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
