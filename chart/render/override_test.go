// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rules "shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/values"
)

// overriding is a Release whose override is made in the clusters of production.
func overriding(of string, patch ...shipper.PatchOperation) *shipper.Release {
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{
		Name: "web-1", Namespace: "shop", Labels: map[string]string{shipper.AppLabel: "web"},
	}}
	production := &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	group := "apps"
	if of == "Service" {
		group = ""
	}
	rel.Spec.Overrides = []shipper.ReleaseOverride{{
		Name: "shop/a", Resources: []shipper.OverriddenResource{{Group: group, Kind: of}},
		Rules: []shipper.OverrideRule{{
			ClusterTerms: []shipper.OverrideClusterTerm{{LabelSelector: production}}, Patch: patch, Delete: len(patch) == 0,
		}},
	}}
	return rel
}

// of is a cluster with a label.
func of(name, env string) render.Cluster {
	c := &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"env": env}}}
	c.Status.KubernetesVersion = "v1.30.0"
	return render.ClusterOf(c)
}

func TestPodsAreCountedAsOverridesHaveThem(t *testing.T) {
	c := sample(t, nil)
	rel := overriding("Deployment", shipper.PatchOperation{"op": "add", "path": "/spec/replicas", "value": int64(5)})
	for _, tc := range []struct {
		in   render.Cluster
		want int32
	}{{of("a", "prod"), 5}, {of("b", "dev"), 1}, {render.Cluster{}, 1}} {
		if got, err := c.Replicas(t.Context(), rel, values.Layers{}, tc.in); got != tc.want || err != nil {
			t.Errorf("%s: %d, %v, want %d", tc.in.Place.Cluster, got, err, tc.want)
		}
	}
}

func TestAnOverrideThatFailsDoesNotKeepPodsFromBeingCounted(t *testing.T) {
	rel := overriding("Deployment", shipper.PatchOperation{"op": "remove", "path": "/spec/replicas"})
	if got, err := sample(t, nil).Replicas(t.Context(), rel, values.Layers{}, of("a", "prod")); got != 1 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
}

func TestClustersAreGroupedByTheirOverrides(t *testing.T) {
	named := shipper.PatchOperation{"op": "add", "path": "/metadata/labels", "value": map[string]any{"at": "${cluster.name}"}}
	same := shipper.PatchOperation{"op": "add", "path": "/metadata/labels", "value": map[string]any{"at": "x"}}
	clusters := []render.Cluster{of("a", "prod"), of("b", "dev"), of("c", "prod"), of("d", "dev")}
	for sentence, tc := range map[string]struct {
		rel  *shipper.Release
		want [][]string
	}{
		"by the rules that match": {overriding("Deployment", same), [][]string{{"a", "c"}, {"b", "d"}}},
		"by variables":            {overriding("Deployment", named), [][]string{{"a"}, {"b", "d"}, {"c"}}},
		"not without overrides":   {&shipper.Release{}, [][]string{{"a", "b", "c", "d"}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got [][]string
			groups, err := render.GroupOf(t.Context(), tc.rel, clusters)
			if err != nil {
				t.Fatal(err)
			}
			for _, alike := range groups {
				got = append(got, alike.Names)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// costly are a Release and clusters of which the text of all rules has 100 MB: each of 50 rules is for 50 resources with long selectors.
func costly() (*shipper.Release, []render.Cluster) {
	rel := overriding("Service", shipper.PatchOperation{"op": "add", "path": "/metadata/labels", "value": "${cluster.name}"})
	o := &rel.Spec.Overrides[0]
	var values []string
	for i := range 16 {
		values = append(values, fmt.Sprintf("%060d", i))
	}
	o.Resources[0].LabelSelector = &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: values}},
	}
	o.Resources, o.Rules = slices.Repeat(o.Resources, 50), slices.Repeat(o.Rules, 50)
	var clusters []render.Cluster
	for i := range 40 {
		clusters = append(clusters, of(fmt.Sprint(i), "prod"))
	}
	return rel, clusters
}

func TestTheMemoryOfGroupingIsBounded(t *testing.T) {
	rel, clusters := costly()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	groups, err := render.GroupOf(t.Context(), rel, clusters)
	runtime.ReadMemStats(&after)
	if err != nil || len(groups) != len(clusters) {
		t.Errorf("%d groups, %v", len(groups), err)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 50<<20 {
		t.Errorf("it allocated %d MiB", allocated>>20)
	}
}

func TestGroupingEndsWithItsContext(t *testing.T) {
	rel, clusters := costly()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if groups, err := render.GroupOf(ctx, rel, clusters); groups != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%d groups, %v", len(groups), err)
	}
}

// TestARenderingHasItsOwnOverrides: results are cached, and those of two clusters differ.
func TestARenderingHasItsOwnOverrides(t *testing.T) {
	c := sample(t, nil)
	rel := overriding("Service")
	for _, tc := range []struct {
		in   render.Cluster
		want int
	}{{of("a", "prod"), 1}, {of("b", "dev"), 2}} {
		table, err := c.LotsOf(t.Context(), byApplication(rel), values.Layers{}, tc.in)
		if err != nil || len(table.Entries) != tc.want {
			t.Errorf("%s: %d objects, %v, want %d", tc.in.Place.Cluster, len(table.Entries), err, tc.want)
		}
	}
}

func byApplication(rel *shipper.Release) *shipper.Release {
	out := rel.DeepCopy()
	out.Spec.Environment.Chart.Naming = shipper.NamingByApplication
	return out
}

// TestHooksAreOverridden: otherwise a chart would escape a mandatory override by the annotation of a hook.
func TestHooksAreOverridden(t *testing.T) {
	const hook = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: %s, annotations: {helm.sh/hook: pre-install}}\nspec: {a: 1}\n"
	c := sample(t, map[string]string{
		"templates/a.yaml": fmt.Sprintf(hook, "a"), "templates/b.yaml": fmt.Sprintf(hook, "b"),
	})
	changes := []rules.Change{
		{Selected: rules.Select([]shipper.OverriddenResource{{Group: "batch", Kind: "Job", Name: "a"}}), Delete: true},
		{Selected: rules.Select([]shipper.OverriddenResource{{Group: "batch", Kind: "Job"}}), Patch: []shipper.PatchOperation{
			{"op": "replace", "path": "/spec/a", "value": int64(2)},
		}},
	}
	with := target
	with.Overrides = changes
	m, err := c.Render(t.Context(), nil, with)
	if err != nil {
		t.Fatal(err)
	}
	hooks, err := m.Hooks(with)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for _, o := range hooks {
		got[o.GetName()] = o.Object["spec"]
	}
	if diff := cmp.Diff(map[string]any{"b": map[string]any{"a": int64(2)}}, got); diff != "" {
		t.Error(diff)
	}
}

// TestAnOverrideOfANamespaceReachesNoObjectWithoutOne: charts often give such objects a namespace, which the API server drops.
func TestAnOverrideOfANamespaceReachesNoObjectWithoutOne(t *testing.T) {
	const objects = `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: without}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: with, namespace: {{ .Release.Namespace }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: own}
`
	c := sample(t, map[string]string{"templates/a.yaml": objects})
	of := []shipper.OverriddenResource{{Group: "scheduling.k8s.io", Kind: "PriorityClass"}, {Kind: "ConfigMap"}}
	for namespace, want := range map[string][]string{target.Namespace: {"with", "without"}, "": nil} {
		with := target
		with.Overrides = []rules.Change{{Namespace: namespace, Selected: rules.Select(of), Delete: true}}
		m, err := c.Render(t.Context(), nil, with)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range m.Objects {
			if o.GetKind() == "PriorityClass" || o.GetKind() == "ConfigMap" {
				got = append(got, o.GetName())
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("an override of namespace %q leaves: %s", namespace, diff)
		}
	}
}
