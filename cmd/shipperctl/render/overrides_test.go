// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestANewReleaseIsRenderedWithTheOverridesThatTheUserMayRead(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := shipper.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	override := func(namespace, name string, mandatory bool) *shipper.ResourceOverride {
		return &shipper.ResourceOverride{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: shipper.ResourceOverrideSpec{Mandatory: mandatory},
		}
	}
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	earlier := &shipper.Release{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-0", Labels: map[string]string{shipper.AppLabel: "web"},
	}}
	earlier.Spec.Overrides = []shipper.ReleaseOverride{{Name: "shop/then"}}
	rollback := map[string]string{shipper.ReleaseRollbackOfAnnotation: "web-0"}
	for sentence, tc := range map[string]struct {
		forbidden   string
		annotations map[string]string
		want        []string
		unread      []string
	}{
		"all": {want: []string{"rollout-blocks-global/may", "shop/edge", "rollout-blocks-global/must"}},
		"without the global ones": {
			forbidden: shipper.GlobalBlocksNamespace, want: []string{"shop/edge"}, unread: []string{shipper.GlobalBlocksNamespace},
		},
		"a rollback": {annotations: rollback, want: []string{"shop/then", "rollout-blocks-global/must"}},
	} {
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
			override("shop", "edge", false), override("other", "edge", false),
			override(shipper.GlobalBlocksNamespace, "may", false), override(shipper.GlobalBlocksNamespace, "must", true),
		).WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				var o client.ListOptions
				if o.ApplyOptions(opts); o.Namespace == tc.forbidden {
					return apierrors.NewForbidden(shipper.Resource("resourceoverrides"), "", nil)
				}
				return c.List(ctx, list, opts...)
			},
		}).Build()
		rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Annotations: tc.annotations}}
		unread, err := copyOverrides(t.Context(), c, app, []*shipper.Release{earlier}, rel)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range rel.Spec.Overrides {
			got = append(got, rel.Spec.Overrides[i].Name)
		}
		if diff := cmp.Diff([][]string{tc.want, tc.unread}, [][]string{got, unread}); diff != "" {
			t.Errorf("%s: the copies, and what is not read (-want +got):\n%s", sentence, diff)
		}
	}
}
