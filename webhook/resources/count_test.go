// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
)

// paged is an API server with 1,000 objects of each kind. It returns pages, and counts the lists that run at the same time.
type paged struct {
	client.Reader
	// fails is the number of the request that fails; 0 for none.
	fails int

	lock              sync.Mutex
	requests, objects int
	now, most         int
	largest           int64
}

// List is client.Reader.
func (p *paged) List(_ context.Context, to client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	list, ok := to.(*metav1.PartialObjectMetadataList)
	if !ok {
		return fmt.Errorf("whole objects are listed: %T", to)
	}
	p.lock.Lock()
	p.now, p.requests = p.now+1, p.requests+1
	p.most, p.largest = max(p.most, p.now), max(p.largest, o.Limit)
	failed := p.requests == p.fails
	p.lock.Unlock()
	time.Sleep(time.Millisecond)
	from, _ := strconv.Atoi(o.Continue)
	for i := range int(o.Limit) {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: in(o.Namespace, fmt.Sprintf("o%d", from+i))})
	}
	list.Continue = strconv.Itoa(from + int(o.Limit))
	p.lock.Lock()
	defer p.lock.Unlock()
	p.now, p.objects = p.now-1, p.objects+len(list.Items)
	if failed {
		return errors.New("away")
	}
	return nil
}

func TestAPreviewListsFewSmallPages(t *testing.T) {
	all := shipper.ResourceSelector{Kind: "ConfigMap"}
	named := shipper.ResourceSelector{Group: "apps", Kind: "Deployment"}
	for name, tc := range map[string]struct {
		fails int
		want  []string
		// objects is how many are listed.
		objects int
	}{
		"all": {0, []string{"selects more than 200 objects: 200 ConfigMaps"}, 200},
		"with an error of the second page": {
			2, []string{
				"select[0]: not counted, listing configmaps: away", "select[1]: not counted, listing configmaps: away",
				"select[2]: not counted, listing configmaps: away", "selects more than 16 objects: 16 ConfigMaps",
			}, 32,
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := &paged{fails: tc.fails}
			j := judge()
			j.Reader = api
			s, errs, err := j.Resolve(t.Context(), ask.Application(ask.Placing(all, all, all)))
			if len(errs) > 0 || err != nil {
				t.Fatal(errs, err)
			}
			if diff := cmp.Diff(tc.want, j.Describe(t.Context(), s)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if api.objects != tc.objects || api.largest != 16 {
				t.Errorf("%d objects are listed, %d in a page", api.objects, api.largest)
			}
		})
	}
	t.Run("of several selectors", func(t *testing.T) {
		api := &paged{}
		j := judge()
		j.Reader = api
		var selectors []shipper.ResourceSelector
		for i := range 10 {
			one := named
			one.Namespace = fmt.Sprintf("ns-%d", i)
			selectors = append(selectors, one)
		}
		s, errs, err := j.Resolve(t.Context(), ask.Application(ask.Placing(selectors...)))
		if len(errs) > 0 || err != nil {
			t.Fatal(errs, err)
		}
		j.Describe(t.Context(), s)
		if api.most != 2 {
			t.Errorf("%d lists run at the same time", api.most)
		}
	})
}
