// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAPlanNamesTheRightsThatAPlacementNeeds(t *testing.T) {
	kinds := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}, {Group: "rbac.authorization.k8s.io", Version: "v1"}})
	for _, kind := range []string{"Namespace", "ResourceQuota", "ConfigMap"} {
		kinds.Add(schema.GroupVersionKind{Version: "v1", Kind: kind}, meta.RESTScopeNamespace)
	}
	kinds.Add(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, meta.RESTScopeRoot)
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
		if diff := cmp.Diff(tc.want, rightsNeeded(app, kinds)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}
