// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// pass reconciles a run of namespace shop once.
func pass(t *testing.T, r *Reconciler, name string) {
	t.Helper()
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: name}}); err != nil {
		t.Fatal(err)
	}
}

// remembered are the starts that the reconciler has, by the names of the runs.
func remembered(r *Reconciler) map[string]string {
	out := map[string]string{}
	r.begun.Range(func(key, value any) bool {
		out[key.(client.ObjectKey).Name] = string(value.(start).uid)
		return true
	})
	return out
}

// behind is which run a run is behind, as it is stored; "begun" once it is under way.
func behind(t *testing.T, r *Reconciler, name string) string {
	t.Helper()
	run, err := r.named(t.Context(), "shop", name)
	if err != nil {
		t.Fatal(err)
	}
	if run.Status.StartTime != nil {
		return "begun"
	}
	return run.Status.Behind
}

func TestTheStartOfARunIsForgottenWhenTheRunFinishedOrIsGone(t *testing.T) {
	first := runOf("first")
	for sentence, ends := range map[string]func(*testing.T, *Reconciler, *shipper.SequenceRun){
		"it was aborted": func(t *testing.T, r *Reconciler, run *shipper.SequenceRun) {
			run.Spec.Abort = "wrong"
			if err := r.client.Update(t.Context(), run); err != nil {
				t.Fatal(err)
			}
		},
		"it was deleted under way": func(t *testing.T, r *Reconciler, run *shipper.SequenceRun) {
			if err := r.client.Delete(t.Context(), run); err != nil {
				t.Fatal(err)
			}
		},
	} {
		r := newReconciler(t, interceptor.Funcs{}, theShipyard(), first.DeepCopy())
		pass(t, r, "first")
		under := remembered(r)
		run, err := r.named(t.Context(), "shop", "first")
		if err != nil {
			t.Fatal(err)
		}
		ends(t, r, run)
		pass(t, r, "first")
		want := []map[string]string{{"first": "first-uid"}, {}}
		if diff := cmp.Diff(want, []map[string]string{under, remembered(r)}); diff != "" {
			t.Errorf("%s: -want +got:\n%s", sentence, diff)
		}
	}
}

// A cache that lags has a run without its start for a while: the next one in line must not begin then. A run that has the name of one that
// was deleted under way has not begun.
func TestARunIsBehindOneWhoseStartOnlyThisProcessHasUnlessThatHasAnotherUID(t *testing.T) {
	old := func(run *shipper.SequenceRun) {
		run.CreationTimestamp, run.Status.Resolved.Context = after(-7200), "older"
	}
	second := runOf("second", old)
	lagging := interceptor.Funcs{List: func(
		ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption,
	) error {
		err := c.List(ctx, list, opts...)
		if all, ok := list.(*shipper.SequenceRunList); ok {
			for i := range all.Items {
				all.Items[i].Status.StartTime = nil
			}
		}
		return err
	}}
	for uid, want := range map[types.UID]string{"first-uid": "first", "former-uid": "begun"} {
		r := newReconciler(t, lagging, theShipyard(), runOf("first"), second.DeepCopy())
		at := metav1.NewTime(noon)
		r.begun.Store(client.ObjectKey{Namespace: "shop", Name: "first"}, start{uid, &at})
		pass(t, r, "second")
		if diff := cmp.Diff(want, behind(t, r, "second")); diff != "" {
			t.Errorf("%s: -want +got:\n%s", uid, diff)
		}
	}
}

func TestNothingIsDoneForARunThatIsGone(t *testing.T) {
	r := newReconciler(t, interceptor.Funcs{}, theShipyard())
	gone := runOf("first")
	d := shipyard.Decision{Status: *gone.Status.DeepCopy()}
	d.Status.Task = "deployment"
	if err := r.write(t.Context(), gone, d); !errors.Is(err, errGone) {
		t.Errorf("writing its status: %v", err)
	}
	if len(remembered(r)) > 0 {
		t.Errorf("it is remembered: %v", remembered(r))
	}
}
