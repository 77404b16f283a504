// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// ended makes a target of which the Release is gone.
func (f *fixture) ended(generation int, digest string) *shipper.InstallationTarget {
	f.Helper()
	it := f.release(generation, digest)
	rel := &shipper.Release{}
	f.must(f.management.Get(f.Context(), client.ObjectKeyFromObject(it), rel))
	f.must(f.management.Delete(f.Context(), rel))
	return it
}

// in has a target list other clusters.
func (f *fixture) in(it *shipper.InstallationTarget, clusters ...string) *shipper.InstallationTarget {
	f.Helper()
	it.Spec.Clusters = clusters
	f.must(f.management.Update(f.Context(), it))
	return it
}

func TestTheNewestTargetInEffectWrites(t *testing.T) {
	f := begin(t)
	f.release(1, "x")
	f.in(f.release(2, "x"), "us-1")
	f.release(10, "x")
	f.ended(11, "x")
	ofChart := f.release(12, "x")
	ofChart.Spec.Resources = nil
	f.must(f.management.Update(t.Context(), ofChart))
	app := types.NamespacedName{Namespace: "team", Name: "web"}
	for cluster, want := range map[string]string{"eu-1": "web-10", "us-1": "web-2", "ap-1": ""} {
		all, err := f.worker.Siblings(t.Context(), app, cluster)
		f.must(err)
		var order []string
		for _, it := range all.Targets {
			order = append(order, it.Name)
		}
		same(t, "order", []string{"web-10", "web-2", "web-1", "web-11"}, order)
		got := ""
		if all.Writer != nil {
			got = all.Writer.Name
		}
		same(t, "who writes in "+cluster, want, got)
	}
}

func TestTheLastTargetToLeaveRemoves(t *testing.T) {
	const leaver, writer, gone = "target-0", "target-1", "target-9"
	for sentence, tc := range map[string]struct {
		others func(f *fixture)
		writer string
		want   bool
	}{
		"another lists the cluster":                {func(f *fixture) { f.release(1, "x") }, leaver, false},
		"it wrote last and none lists it":          {func(f *fixture) { f.in(f.release(1, "x"), "us-1") }, leaver, true},
		"another wrote last, and is still there":   {func(f *fixture) { f.in(f.release(1, "x"), "us-1") }, writer, false},
		"another wrote last, and is gone":          {func(*fixture) {}, gone, true},
		"one that has ended does not count":        {func(f *fixture) { f.ended(1, "x") }, leaver, true},
		"the last writer has ended and must do it": {func(f *fixture) { f.ended(1, "x") }, writer, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := begin(t)
			it := f.ended(0, "x")
			tc.others(f)
			got, err := f.siblings("team").removes(t.Context(), it, "eu-1", tc.writer)
			f.must(err)
			same(t, "removes", tc.want, got)
		})
	}
}

// TestTheAPIServerIsAskedOnceInAPass counts what the removal of an Application with many Releases asks the management cluster.
func TestTheAPIServerIsAskedOnceInAPass(t *testing.T) {
	f := begin(t)
	var all []*shipper.InstallationTarget
	for generation := range 5 {
		all = append(all, f.ended(generation, "x"))
	}
	gets, lists := map[string]int{}, 0
	c, ok := f.management.(client.WithWatch)
	if !ok {
		t.Fatalf("%T cannot watch", f.management)
	}
	f.worker.Live = interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			gets[key.Name]++
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			lists++
			return c.List(ctx, list, opts...)
		},
	})
	siblings := f.siblings("team")
	for _, it := range all {
		if removes, err := siblings.removes(t.Context(), it, "eu-1", "gone"); err != nil || !removes {
			t.Errorf("%s: %t, %v", it.Name, removes, err)
		}
	}
	same(t, "lists", 1, lists)
	same(t, "Releases", map[string]int{"web-0": 1, "web-1": 1, "web-2": 1, "web-3": 1, "web-4": 1}, gets)
}
