// SPDX-License-Identifier: Apache-2.0

package lots_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/chart/render"
)

// checkLaws holds what becomes of a chart against what is promised of any, for two Releases of one Application.
func checkLaws(t *testing.T, manifest render.Manifest, app string) {
	t.Helper()
	rendered := make([]unstructured.Unstructured, len(manifest.Objects))
	for i := range manifest.Objects {
		rendered[i] = *manifest.Objects[i].DeepCopy()
	}
	first, _ := manifest.Lots(targetOf(app, 0))
	again, _ := manifest.Lots(targetOf(app, 0))
	next := targetOf(app, 1)
	next.InUse = lots.InUseOf(pointers(rendered), first.Objects())
	second, _ := manifest.Lots(next)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the same Release differs from time to time: -first +again:\n%s", diff)
	}
	if diff := cmp.Diff(rendered, manifest.Objects, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("what was rendered has changed: -want +got:\n%s", diff)
	}
	checkNames(t, rendered, first)
	checkOneOfEach(t, first, second)
	checkReferences(t, rendered, first, lots.Suffix(lots.Release{App: app, Name: targetOf(app, 0).ReleaseName}))
	checkSelectors(t, first, second)
	checkServices(t, app, first)
}

// id identifies an object in a cluster.
func id(o *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s %s", o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName())
}

// checkNames: every name of the chart exists, apart from those that exist once per Release, and no object has the name of another.
func checkNames(t *testing.T, rendered []unstructured.Unstructured, table lots.Table) {
	t.Helper()
	written := map[string]bool{}
	for _, o := range table.Objects() {
		if written[id(o)] {
			t.Errorf("%s is written twice", id(o))
		}
		written[id(o)] = true
		if n := len(o.GetName()); n > 253 || o.GetKind() == "Deployment" && n > lots.MaxLabel {
			t.Errorf("%s has %d bytes", id(o), n)
		}
	}
	for i := range rendered {
		e := &table.Entries[i]
		if exists := written[id(&rendered[i])]; exists == (e.Lot == lots.SideBySide) {
			t.Errorf("%s is %s, and exists under the name of the chart: %t", e, e.Lot, exists)
		}
	}
}

// pointers are those to objects.
func pointers(objects []unstructured.Unstructured) (out []*unstructured.Unstructured) {
	for i := range objects {
		out = append(out, &objects[i])
	}
	return out
}

// checkOneOfEach: two Releases of equal configuration have nothing in common but what is shared or in place, and that is the same but for
// Shipper's labels on the object itself: its Pods see nothing of a Release. They use the copies of the first.
func checkOneOfEach(t *testing.T, first, second lots.Table) {
	t.Helper()
	for i := range first.Entries {
		a, b := &first.Entries[i], &second.Entries[i]
		if a.Lot == lots.SideBySide {
			if id(a.Object) == id(b.Object) {
				t.Errorf("%s is that of both Releases", id(a.Object))
			}
			continue
		}
		inPlace := slices.ContainsFunc(a.UsedBy, func(workload string) bool { return lotOf(first, workload) == lots.InPlace })
		if a.Copy != nil && (a.Copy.GetName() == b.Copy.GetName()) != inPlace {
			t.Errorf("Pods of the first Release use %s, those of the second %s; used by %s", id(a.Copy), id(b.Copy), a.UsedBy)
		}
		one, other := a.Object.DeepCopy(), b.Object.DeepCopy()
		one.SetLabels(nil)
		other.SetLabels(nil)
		if diff := cmp.Diff(one, other); diff != "" {
			t.Errorf("%s changes from Release to Release: -first +second:\n%s", a, diff)
		}
	}
}

// lotOf is the lot of an object, by kind and given name.
func lotOf(table lots.Table, object string) lots.Lot {
	for i := range table.Entries {
		if table.Entries[i].String() == object {
			return table.Entries[i].Lot
		}
	}
	return ""
}

// checkReferences: Pods of workloads use copies alone, by the references that kustomize would rewrite, and what scales a Deployment
// scales one of the same Release.
func checkReferences(t *testing.T, rendered []unstructured.Unstructured, table lots.Table, suffix string) {
	t.Helper()
	var renamed []unstructured.Unstructured
	exists := map[string]bool{}
	for i := range table.Entries {
		e := &table.Entries[i]
		exists[e.Object.GetKind()+" "+e.Object.GetName()] = true
		if e.Lot != lots.Shared || e.Copy != nil {
			bare := rendered[i].DeepCopy()
			bare.Object["metadata"] = map[string]any{"name": e.Given}
			renamed = append(renamed, *bare)
		}
	}
	if len(renamed) == 0 {
		return
	}
	want := byKustomize(t, suffix, renamed)
	for i := range table.Entries {
		e := &table.Entries[i]
		if e.Lot == lots.Shared {
			continue
		}
		if diff := cmp.Diff(pods(t, want[e.String()]), pods(t, e.Object.Object)); diff != "" {
			t.Errorf("%s: -kustomize +ours:\n%s", e, diff)
		}
		for _, field := range []string{"scaleTargetRef", "targetRef"} {
			if scaled, found, _ := unstructured.NestedString(e.Object.Object, "spec", field, "name"); found && !exists["Deployment "+scaled] {
				t.Errorf("%s scales %s, which does not exist", e, scaled)
			}
		}
	}
	for i := range table.Entries {
		if e := &table.Entries[i]; e.Copy != nil {
			checkCopy(t, e)
		}
	}
}

// checkCopy: a copy has the content of its original, and no labels or annotations but Shipper's.
func checkCopy(t *testing.T, e *lots.Entry) {
	t.Helper()
	for _, field := range []string{"data", "binaryData", "stringData", "type", "immutable"} {
		if diff := cmp.Diff(e.Object.Object[field], e.Copy.Object[field]); diff != "" {
			t.Errorf("%s of the copy of %s: -want +got:\n%s", field, e, diff)
		}
	}
	for key := range e.Copy.GetLabels() {
		if !shipper.ReservedLabel(key) {
			t.Errorf("the copy of %s has the label %s", e, key)
		}
	}
	if given := e.Copy.GetAnnotations(); len(given) > 0 {
		t.Errorf("the copy of %s has the annotations %v", e, given)
	}
}

// checkSelectors: a Deployment side by side selects its own Pods, and those of no other, of either Release. No other Pods have labels of
// Shipper.
func checkSelectors(t *testing.T, tables ...lots.Table) {
	t.Helper()
	var deployments []*unstructured.Unstructured
	for _, table := range tables {
		for i := range table.Entries {
			o := table.Entries[i].Object
			if table.Entries[i].Lot == lots.SideBySide && o.GetKind() == "Deployment" {
				deployments = append(deployments, o)
				continue
			}
			for key := range podLabels(o) {
				if shipper.ReservedLabel(key) {
					t.Errorf("Pods of %s have the label %s", id(o), key)
				}
			}
		}
	}
	for _, one := range deployments {
		if n, _, _ := unstructured.NestedInt64(one.Object, "spec", "replicas"); n != 0 {
			t.Errorf("%s begins with %d Pods", id(one), n)
		}
		given, _, _ := unstructured.NestedMap(one.Object, "spec", "selector")
		var selector metav1.LabelSelector
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(given, &selector); err != nil {
			t.Fatal(err)
		}
		matches, err := metav1.LabelSelectorAsSelector(&selector)
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range deployments {
			if matches.Matches(podLabels(other)) != (one == other) {
				t.Errorf("%s selects Pods of %s: %s", id(one), id(other), matches)
			}
		}
	}
}

// podLabels are the labels of a workload's Pods.
func podLabels(o *unstructured.Unstructured) labels.Set {
	found, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
	return found
}

// checkServices: production Services select by a label of their own, which no Pod has from the start; others select what the chart says.
func checkServices(t *testing.T, app string, table lots.Table) {
	t.Helper()
	uses := map[string]lots.Use{}
	for _, s := range table.Services {
		uses[s.Name] = s.Use
	}
	for _, o := range table.Objects() {
		for key := range podLabels(o) {
			if strings.HasPrefix(key, shipper.ServesPrefix) || key == shipper.TrafficStatusLabel {
				t.Errorf("Pods of %s have traffic from the start: %s", id(o), key)
			}
		}
		if o.GetAPIVersion() != "v1" || o.GetKind() != "Service" {
			continue
		}
		selector, _, _ := unstructured.NestedStringMap(o.Object, "spec", "selector")
		want := map[string]string{shipper.AppLabel: app, shipper.ServesLabel(o.GetName()): "true"}
		if is := uses[o.GetName()] == lots.Production; is != cmp.Equal(want, selector) {
			t.Errorf("%s is %s and selects %v", id(o), uses[o.GetName()], selector)
		}
		if marked := o.GetLabels()[shipper.LBLabel] == shipper.LBForProduction; marked != (uses[o.GetName()] == lots.Production) {
			t.Errorf("%s is %s and has the labels %v", id(o), uses[o.GetName()], o.GetLabels())
		}
	}
}
