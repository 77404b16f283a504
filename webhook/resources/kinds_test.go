// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
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
	mapper, now := &counting{RESTMapper: known}, clocktesting.NewFakeClock(time.Unix(1, 0))
	api := &listing{}
	api.list("v1", "ConfigMap")
	kinds := resources.Discovered(mapper, api, now)
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
	if got := [2]int32{mapper.lookUps.Load(), api.asked.Load()}; got != [2]int32{0, 1} {
		t.Errorf("%d look-ups are made of one kind that is not served, and %d lists are read", got[0], got[1])
	}
	known.Add(widget.WithVersion("v1"), meta.RESTScopeNamespace)
	api.list("example.com/v1", "Widget")
	now.Step(5 * time.Second)
	if err := errors.Join(find(widget), find(configMap.GroupKind())); err != nil {
		t.Errorf("kinds that are served: %v", err)
	}
	api.partial.Store(true) // the group hangs.example.com does not respond
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

// listing is an API server that counts how often its kinds are listed, and how many lists are on their way.
type listing struct {
	discovery.DiscoveryInterface
	mu      sync.Mutex
	lists   []*metav1.APIResourceList
	partial atomic.Bool
	asked   atomic.Int32
	// takes, unless it is zero, is how long a list takes.
	takes time.Duration
}

func (l *listing) list(groupVersion, kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lists = append(l.lists, &metav1.APIResourceList{GroupVersion: groupVersion, APIResources: []metav1.APIResource{{Kind: kind}}})
}

func (l *listing) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	l.asked.Add(1)
	time.Sleep(l.takes)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.partial.Load() {
		return nil, l.lists, &discovery.ErrGroupDiscoveryFailed{}
	}
	return nil, l.lists, nil
}

// One tenant names 150 kinds that are not served, 30 at a time, and again and again. Another's kind is found after two lists at most.
func TestKindsThatAreNotServedShareOneList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}})
		configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
		known.Add(configMap, meta.RESTScopeNamespace)
		api := &listing{takes: time.Second}
		api.list("v1", "ConfigMap")
		kinds := resources.Discovered(known, api, clock.RealClock{})
		var all sync.WaitGroup
		for i := range 30 {
			all.Go(func() {
				for j := range 5 {
					gk := schema.GroupKind{Group: "example.com", Kind: fmt.Sprintf("Kind%d-%d", i, j)}
					if _, err := kinds.Find(t.Context(), gk, ""); !errors.Is(err, resources.ErrNotServed) {
						t.Errorf("%s: %v", gk, err)
					}
				}
			})
		}
		time.Sleep(500 * time.Millisecond)
		began := time.Now()
		if _, err := kinds.Find(t.Context(), configMap.GroupKind(), ""); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("another's kind is found after %s", took)
		}
		all.Wait()
		if got := api.asked.Load(); got > 10 { // each of five rounds may fall into two lists
			t.Errorf("150 kinds were looked for by %d lists", got)
		}
	})
}

func TestALookUpEndsWithItsRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	kinds := resources.Discovered(hanging{}, &listing{}, ask.Clock())
	if _, err := kinds.Find(ctx, schema.GroupKind{Kind: "ConfigMap"}, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
