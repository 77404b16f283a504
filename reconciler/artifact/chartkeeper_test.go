// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// ended is all that a pass comes to: when the next is, whether that is an error, and how many events there are.
type ended struct {
	Again  time.Duration
	Failed bool
	Events int
}

func TestResultOfStoringAChart(t *testing.T) {
	resource := schema.GroupResource{Group: shipper.GroupName, Resource: "chartsnapshots"}
	terminating := apierrors.NewForbidden(resource, "x", errors.New("it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	refused := apierrors.NewForbidden(resource, "x", errors.New("no"))
	charts := set{kind: chartSnapshot}
	changed := charts.failed(&shipper.ChartSnapshot{}, errChanged)
	conflict := charts.failed(&shipper.ChartSnapshot{}, apierrors.NewConflict(resource, "x", errors.New("modified")))
	for name, tc := range map[string]struct {
		err  error
		want ended
	}{
		"it is kept":                     {nil, ended{}},
		"a conflict":                     {conflict, ended{Again: 4 * time.Second}},
		"what is there is not as it was": {changed, ended{Again: 4 * time.Second}},
		"what is there is being deleted, for long":        {errDeleted, ended{Again: 4 * time.Second}},
		"its namespace goes, and with it the Release":     {charts.failed(&shipper.ChartSnapshot{}, terminating), ended{}},
		"it may not be written":                           {refused, ended{Failed: true, Events: 3}},
		"it is too large, which no other try will change": {tooLarge(maxArchive + 1), ended{Events: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(10)
			r := &chartKeeper{recorder: recorder, retrier: newSlowRetrier()}
			var got ended
			for range 3 {
				result, err := r.result(ctrl.Request{}, &shipper.Release{}, tc.err)
				got = ended{result.RequeueAfter, err != nil, len(recorder.Events)}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("after three passes (-want +got)\n%s", diff)
			}
		})
	}
}

// TestConflictsAreForgotten is about a Release that a pass finds gone, going, or with its chart kept.
func TestConflictsAreForgotten(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	rel := func() *shipper.Release {
		return &shipper.Release{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-0", UID: "1", Annotations: map[string]string{shipper.ReleaseChartDigestAnnotation: digest},
		}}
	}
	going := rel()
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"example.com/wait"}
	head := &shipper.ChartSnapshot{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: shipper.ChartSnapshotName(digest), Labels: map[string]string{shipper.ChartPartsLabel: "0"},
		OwnerReferences: []metav1.OwnerReference{ownedBy("Release", rel())},
	}}
	scheme := runtime.NewScheme()
	if err := shipper.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for sentence, objects := range map[string][]client.Object{
		"it is gone": nil, "it is being deleted": {going}, "its chart is kept": {rel(), head},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
			r := &chartKeeper{set: set{chartSnapshot, c}, retrier: newSlowRetrier()}
			req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(rel())}
			for range 3 {
				r.retrier.Again(req)
			}
			if got, err := r.Reconcile(t.Context(), req); err != nil || !got.IsZero() {
				t.Errorf("the pass returns %v, %v", got, err)
			}
			if got := r.retrier.Again(req).RequeueAfter; got != time.Second {
				t.Errorf("the next conflict is retried after %s", got)
			}
		})
	}
}

// TestFailedTests has the API server's answers to patches: the first is what it says of operations that fail.
func TestFailedTests(t *testing.T) {
	kind := schema.GroupKind{Group: shipper.GroupName, Kind: "ChartSnapshot"}
	for sentence, tc := range map[string]struct {
		err  error
		want bool
	}{
		"an operation fails": {
			apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "test failed", 0, false), true,
		},
		"what would come of it is invalid": {
			apierrors.NewInvalid(kind, "x", field.ErrorList{field.Required(field.NewPath("spec", "digest"), "")}), false,
		},
		"a conflict":       {apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("modified")), false},
		"nothing is wrong": {nil, false},
	} {
		if got := testFailed(tc.err); got != tc.want {
			t.Errorf("%s: testFailed is %t", sentence, got)
		}
	}
}
