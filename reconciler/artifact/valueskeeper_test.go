// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/retry"
)

// TestConflictsOfAReleaseThatIsGoneAreForgotten is about a Release that is deleted while a pass over it is to be repeated.
func TestConflictsOfAReleaseThatIsGoneAreForgotten(t *testing.T) {
	going := &shipper.Release{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web-0", DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}, Finalizers: []string{"example.com/wait"},
	}}
	scheme := runtime.NewScheme()
	if err := shipper.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for sentence, objects := range map[string][]client.Object{"it is gone": nil, "it is being deleted": {going}} {
		t.Run(sentence, func(t *testing.T) {
			r := &valuesKeeper{
				client:  fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(),
				retrier: retry.NewRetrier(retry.Limiter[ctrl.Request]()),
			}
			req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(going)}
			for range 3 {
				r.retrier.Again(req)
			}
			if got, err := r.Reconcile(t.Context(), req); err != nil || !got.IsZero() {
				t.Errorf("the pass returns %v, %v", got, err)
			}
			if got := r.retrier.Again(req).RequeueAfter; got != 5*time.Millisecond {
				t.Errorf("the next conflict is retried after %s", got)
			}
		})
	}
}
