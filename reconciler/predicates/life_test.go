// SPDX-License-Identifier: Apache-2.0

package predicates

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestWhatADeletionWaitsForWakesAnApplication(t *testing.T) {
	for sentence, tc := range map[string]struct {
		change func(*shipper.Application)
		wakes  bool
	}{
		"nothing":                           {func(*shipper.Application) {}, false},
		"the status":                        {func(a *shipper.Application) { a.Status.ObservedGeneration = 2 }, false},
		"a finalizer of another tool goes":  {func(a *shipper.Application) { a.Finalizers = a.Finalizers[:1] }, true},
		"a finalizer of another tool comes": {func(a *shipper.Application) { a.Finalizers = append(a.Finalizers, "x/y") }, true},
		"an owner comes":                    {func(a *shipper.Application) { a.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }, true},
		"it is to go":                       {func(a *shipper.Application) { now := metav1.Unix(1, 0); a.DeletionTimestamp = &now }, true},
	} {
		was := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{shipper.RolloutFinalizer, "example.com/other"}}}
		is := was.DeepCopy()
		tc.change(is)
		if got := specOrMeta().Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}); got != tc.wakes {
			t.Errorf("%s: wakes %t, want %t", sentence, got, tc.wakes)
		}
	}
}
