// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

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

// counting hangs for kinds of the group hangs.example.com, and counts the look-ups.
type counting struct {
	meta.RESTMapper
	lookUps atomic.Int32
}

func (c *counting) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if c.lookUps.Add(1); gk.Group == "hangs.example.com" {
		select {}
	}
	return c.RESTMapper.RESTMapping(gk, versions...)
}

func TestInventedKindsDoNotDelayOthers(t *testing.T) {
	known := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}, {Group: "example.com", Version: "v1"}})
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	known.Add(configMap, meta.RESTScopeNamespace)
	mapper, clock := &counting{RESTMapper: known}, clocktesting.NewFakeClock(time.Unix(1, 0))
	kinds := resources.Discovered(mapper, nil, clock)
	find := func(gk schema.GroupKind) error {
		_, err := kinds.Find(t.Context(), gk, "")
		return err
	}
	widget := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	for range 3 {
		if err := find(widget); !errors.Is(err, resources.ErrNotServed) {
			t.Fatalf("a kind that is not served: %v", err)
		}
	}
	if got := mapper.lookUps.Load(); got != 1 {
		t.Errorf("%d look-ups are made of one kind", got)
	}
	known.Add(widget.WithVersion("v1"), meta.RESTScopeNamespace)
	clock.Step(5 * time.Second)
	if err := errors.Join(find(widget), find(configMap.GroupKind())); err != nil {
		t.Errorf("kinds that are served: %v", err)
	}
	for i := range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		gk := schema.GroupKind{Group: "hangs.example.com", Kind: fmt.Sprintf("Kind%d", i)}
		if _, err := kinds.Find(ctx, gk, ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a look-up that hangs: %v", err)
		}
		cancel()
	}
	if err := find(configMap.GroupKind()); err != nil {
		t.Errorf("a kind that was found before: %v", err)
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
