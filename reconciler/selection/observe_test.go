// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/reconciler/retry"
)

// paged is an API server with ConfigMaps c0, c1, … of a size. It counts the objects that it returns.
type paged struct {
	client.Reader
	configMaps, bytes int
	read              int
	// limits are those of the requests.
	limits map[int64]bool
}

// List is client.Reader.
func (p *paged) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	if p.limits == nil {
		p.limits = map[int64]bool{}
	}
	p.limits[o.Limit] = true
	from, _ := strconv.Atoi(o.Continue)
	out, ok := list.(*unstructured.UnstructuredList)
	if !ok {
		return fmt.Errorf("%T is listed", list)
	}
	for ; from < p.configMaps && len(out.Items) < int(o.Limit); from++ {
		out.Items = append(out.Items, object("ConfigMap", "work", fmt.Sprintf("c%d", from), strings.Repeat("x", p.bytes)))
		p.read++
	}
	if from < p.configMaps {
		out.SetContinue(strconv.Itoa(from))
	}
	return nil
}

func selecting(selectors ...shipper.ResourceSelector) *shipper.Application {
	app := &shipper.Application{}
	app.Namespace, app.Name = "work", "web"
	app.Spec.Template.Resources = &shipper.Resources{Select: selectors}
	return app
}

func coreMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	return mapper
}

func TestReadingEndsAtTheBoundsAndNamesTheLargest(t *testing.T) {
	for sentence, tc := range map[string]struct {
		configMaps, bytes int
		// most is how many objects are read.
		most    int
		message string
	}{
		"200 of 1 MiB": {200, 1 << 20, 16, "at least 8 objects with 8 MiB together"},
		"20,000":       {20000, 1, 2016, "at least 2001 objects with"},
	} {
		t.Run(sentence, func(t *testing.T) {
			api := &paged{configMaps: tc.configMaps, bytes: tc.bytes}
			r := newReader(api, coreMapper(), nil, objects.Policy{})
			all := shipper.ResourceSelector{Kind: "ConfigMap"}
			queries, _, err := r.queries(selecting(all, all, all, all, all, all, all, all))
			if err != nil || len(queries) != 1 {
				t.Fatalf("8 equal selectors are %d queries, %v", len(queries), err)
			}
			found, err := r.read(t.Context(), queries)
			p, ok := errors.AsType[*Problem](err)
			if !ok || p.Reason != shipper.SelectionTooLarge || p.action != retry.Recheck || strings.Count(p.Message, "ConfigMap work/c") != 5 ||
				!strings.HasPrefix(p.Message, tc.message) {
				t.Errorf("reading ends with %v", err)
			}
			if api.read > tc.most {
				t.Errorf("%d objects are read, want at most %d", api.read, tc.most)
			}
			if diff := cmp.Diff(map[int64]bool{16: true}, api.limits); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
			for i := range found[0].objects {
				if _, kept := found[0].objects[i].Object["data"]; kept {
					t.Fatal("content is kept")
				}
			}
			if got := len(r.interests(queries, found)); got != 2 { // of the query, and of what it has found
				t.Errorf("%d interests are left", got)
			}
		})
	}
}

func TestObjectsThatTwoQueriesFindCountOnce(t *testing.T) {
	api := &paged{configMaps: 1500, bytes: 1}
	r := newReader(api, coreMapper(), nil, objects.Policy{})
	q := query{gvk: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}}
	found, err := r.read(t.Context(), []query{q, q})
	if err != nil || len(found[1].objects) != 1500 {
		t.Fatalf("%d results, %v", len(found), err)
	}
}

// ending is an API server with one Namespace, which is being deleted.
type ending struct{ client.Reader }

func (ending) namespace() unstructured.Unstructured {
	o := object("Namespace", "", "work", "")
	o.SetDeletionTimestamp(new(metav1.Unix(1, 0)))
	return o
}

// Get is client.Reader.
func (e ending) Get(_ context.Context, _ client.ObjectKey, to client.Object, _ ...client.GetOption) error {
	if out, ok := to.(*unstructured.Unstructured); ok {
		*out = e.namespace()
	}
	return nil
}

// List is client.Reader.
func (e ending) List(_ context.Context, to client.ObjectList, _ ...client.ListOption) error {
	if out, ok := to.(*unstructured.UnstructuredList); ok {
		out.Items = []unstructured.Unstructured{e.namespace()}
	}
	return nil
}

func TestNothingIsTakenWhileASelectedNamespaceIsBeingDeleted(t *testing.T) {
	for sentence, tc := range map[string]struct {
		selector shipper.ResourceSelector
		stops    bool
	}{
		"by name":                 {shipper.ResourceSelector{Kind: "Namespace", Name: "work"}, true},
		"by labels":               {shipper.ResourceSelector{Kind: "Namespace", LabelSelector: &metav1.LabelSelector{}}, true},
		"without content":         {shipper.ResourceSelector{Kind: "Namespace", Content: shipper.ContentNone}, false},
		"by name without content": {shipper.ResourceSelector{Kind: "Namespace", Name: "work", Content: shipper.ContentNone}, false},
	} {
		r := newReader(ending{}, coreMapper(), nil, objects.Policy{})
		queries, _, err := r.queries(selecting(tc.selector))
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.read(t.Context(), queries)
		p, ok := errors.AsType[*Problem](err)
		if ok != tc.stops || ok && p.Reason != shipper.SelectionNotReadable || !ok && err != nil {
			t.Errorf("%s: reading ends with %v", sentence, err)
		}
	}
}
