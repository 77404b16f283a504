// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/chart/render"
)

// pages is an API server with many objects of one size.
type pages struct {
	client.Reader
	objects, size int
	read          int // bytes
	largest       int
}

func (p *pages) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	from := 0
	if o.Continue != "" {
		if _, err := fmt.Sscan(o.Continue, &from); err != nil {
			return err
		}
	}
	to := p.objects
	if o.Limit > 0 {
		to = min(to, from+int(o.Limit))
	}
	list := into.(*unstructured.UnstructuredList)
	for n := from; n < to; n++ {
		list.Items = append(list.Items, unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": fmt.Sprint(n)}, "data": strings.Repeat("x", p.size),
		}})
	}
	if to < p.objects {
		list.SetContinue(fmt.Sprint(to))
	}
	p.read, p.largest = p.read+(to-from)*p.size, max(p.largest, (to-from)*p.size)
	return nil
}

// TestAListIsReadUpToABound: a tenant may have hundreds of objects of 1 MiB, all of which would be in memory.
func TestAListIsReadUpToABound(t *testing.T) {
	for sentence, tc := range map[string]struct{ objects, size, want int }{
		"none":                 {0, 0, 0},
		"few":                  {3, 10, 3},
		"more than one answer": {60, 10, 60},
		"more than are listed": {700, 10, 500},
		"large ones":           {500, 1 << 20, 25},
	} {
		p := &pages{objects: tc.objects, size: tc.size}
		found, err := listed(t.Context(), p, corev1.SchemeGroupVersion.WithKind("ConfigMap"), "shop")
		if err != nil {
			t.Fatal(err)
		}
		items, _ := found["items"].([]any)
		if found["kind"] != "ConfigMapList" || len(items) != tc.want || p.largest > 32<<20 {
			t.Errorf("%s: %v with %d objects, want %d; one answer has %d bytes", sentence, found["kind"], len(items), tc.want, p.largest)
		}
		if large := render.Weigh(found) > render.MostFound; large != (tc.size == 1<<20) {
			t.Errorf("%s: it is too large for a chart: %t", sentence, large)
		}
	}
}
