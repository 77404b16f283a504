// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestAPlanNamesTheRightsThatAPlacementNeeds(t *testing.T) {
	kinds := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}, {Group: "rbac.authorization.k8s.io", Version: "v1"}})
	for _, kind := range []string{"Namespace", "ResourceQuota", "ConfigMap"} {
		kinds.Add(schema.GroupVersionKind{Version: "v1", Kind: kind}, meta.RESTScopeNamespace)
	}
	kinds.Add(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, meta.RESTScopeRoot)
	limits := &shipper.Envelope{
		ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "limits"},
		Spec: shipper.EnvelopeSpec{Manifests: []shipper.Manifest{
			{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": map[string]any{"name": "limits"}},
			{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "limits"}},
		}},
	}
	scheme := runtime.NewScheme()
	if err := shipper.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(limits).Build()
	const command = "; an administrator of each cluster grants it there, unless that was done: " +
		"kubectl create clusterrole shipper-"
	for sentence, tc := range map[string]struct {
		selects []any
		want    []string
	}{
		"nothing beyond what charts need": {[]any{map[string]any{"kind": "ConfigMap", "name": "a"}}, nil},
		"kinds that give rights get no command": {
			[]any{map[string]any{"group": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "a"}}, nil,
		},
		"a kind that is not served": {[]any{map[string]any{"kind": "Gizmo", "name": "a"}}, nil},
		"two of a kind": {
			[]any{map[string]any{"kind": "ResourceQuota", "name": "a"}, map[string]any{"kind": "ResourceQuota", "name": "b"}},
			[]string{"by default Shipper's account in application clusters may not write resourcequotas" + command + "resourcequotas " +
				"--verb=get,list,watch,create,patch,delete --resource=resourcequotas && kubectl label clusterrole shipper-resourcequotas " +
				"shipper.booking.com/aggregate-to-application=true"},
		},
		"what an Envelope holds, and not the Envelope": {
			[]any{map[string]any{"group": "shipper.booking.com", "kind": "Envelope", "name": "limits"}},
			[]string{"by default Shipper's account in application clusters may not write resourcequotas" + command + "resourcequotas " +
				"--verb=get,list,watch,create,patch,delete --resource=resourcequotas && kubectl label clusterrole shipper-resourcequotas " +
				"shipper.booking.com/aggregate-to-application=true"},
		},
		"an Envelope of other labels": {
			[]any{map[string]any{"group": "shipper.booking.com", "kind": "Envelope", "labelSelector": map[string]any{
				"matchLabels": map[string]any{"a": "b"},
			}}}, nil,
		},
		"an Envelope of another namespace": {
			[]any{map[string]any{"group": "shipper.booking.com", "kind": "Envelope", "name": "limits", "namespace": "other"}}, nil,
		},
		"a namespace with what is in it": {
			[]any{map[string]any{"kind": "Namespace", "name": "a"}},
			[]string{"by default Shipper's account in application clusters may not write namespaces, nor kinds in a namespace that charts do " +
				"not need" + command + "namespaces --verb=get,list,watch,create,patch,delete --resource=namespaces && " +
				"kubectl label clusterrole shipper-namespaces shipper.booking.com/aggregate-to-application=true"},
		},
	} {
		app := &unstructured.Unstructured{Object: map[string]any{
			"spec": map[string]any{"template": map[string]any{"resources": map[string]any{"select": tc.selects}}},
		}}
		if diff := cmp.Diff(tc.want, rightsNeeded(app, kinds, envelopesOf(t.Context(), c, "work"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}
