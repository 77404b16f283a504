// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
			for _, alike := range render.GroupOf(tc.rel, clusters) {
				got = append(got, alike.Names)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
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
