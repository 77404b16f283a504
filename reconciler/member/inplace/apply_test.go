// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/retry"
)

func TestARefusedWriteIsNotRepeatedForATime(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	p := passOf(statefulSet, set("a", 4, 0, 4), facts{}, has("b", 50, 4), has("a", 100, 4))
	p.Worker, p.member = NewWorker(nil, nil, nil, now), &fleet.Member{Name: "west"}
	there := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{UID: "1", Generation: 3}}
	immutable := &problem{shipper.ChartError, retry.Recheck, "immutable"}
	p.noteRefusal(there, errors.New("away"))
	if err := p.refusedBefore(there); err != nil {
		t.Errorf("a write that failed for another reason waits: %v", err)
	}
	p.noteRefusal(there, immutable)
	if err := p.refusedBefore(there); !errors.Is(err, immutable) {
		t.Errorf("a refused write is repeated at once: %v", err)
	}
	other := there.DeepCopy()
	other.Generation++
	if err := p.refusedBefore(other); err != nil {
		t.Errorf("a write waits though the object has changed: %v", err)
	}
	if err := p.refusedBefore(nil); err != nil {
		t.Errorf("a write waits though the object is gone: %v", err)
	}
	now.SetTime(now.Now().Add(refusedFor))
	if err := p.refusedBefore(there); err != nil {
		t.Errorf("a write is not repeated: %v", err)
	}
}
