// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"

	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/resources"
)

// hanging never responds.
type hanging struct{ meta.RESTMapper }

func (hanging) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) { select {} }

func TestKindsAreFoundByDiscovery(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}})
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	mapper.Add(configMap, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	api := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{{
		GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: []string{"list", "get"}},
			{Name: "bindings", Kind: "Binding", Namespaced: true, Verbs: []string{"create"}},
			{Name: "namespaces", Kind: "Namespace", Verbs: []string{"list"}},
		},
	}}}}
	kinds := resources.Discovered(mapper, api, ask.Clock())
	want := resources.Kind{GroupVersionKind: configMap, Resource: "configmaps", Namespaced: true}
	got, err := kinds.Find(t.Context(), configMap.GroupKind(), "")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, kind (-want +got):\n%s", err, diff)
	}
	if _, err := kinds.Find(t.Context(), schema.GroupKind{Kind: "Widget"}, ""); !errors.Is(err, resources.ErrNotServed) {
		t.Errorf("a kind that is not served: %v", err)
	}
	for range 2 { // the second answer is cached
		listed, err := kinds.InNamespaces(t.Context())
		if diff := cmp.Diff([]resources.Kind{want}, listed); diff != "" || err != nil {
			t.Errorf("%v, kinds (-want +got):\n%s", err, diff)
		}
	}
}

func TestALookUpEndsWithItsRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	kinds := resources.Discovered(hanging{}, nil, ask.Clock())
	if _, err := kinds.Find(ctx, schema.GroupKind{Kind: "ConfigMap"}, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
