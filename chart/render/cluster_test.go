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

// in is a cluster of a version.
func in(name, version string, apis ...string) render.Cluster {
	return render.Cluster{Place: values.Place{Cluster: name, Region: "eu"}, KubeVersion: version, APIVersions: apis}
}

func TestClustersAreGroupedByWhatMayDiffer(t *testing.T) {
	layers := values.Layers{PerCluster: []shipper.ValuesFor{{Name: "c"}}}
	got := render.Group(layers, []render.Cluster{
		in("a", "v1.30.0"), in("b", "v1.31.0"), in("c", "v1.30.0"), in("d", "v1.30.0"), in("e", "v1.30.0", "x/v1"), in("f", "v1.30.0", "x/v1"),
	})
	group := func(cluster, version string, apis []string, names ...string) render.Alike {
		c := render.Cluster{Place: values.Place{Cluster: cluster}, KubeVersion: version, APIVersions: apis}
		return render.Alike{Cluster: c, Names: names}
	}
	want := []render.Alike{
		group("", "v1.30.0", nil, "a", "d"), group("", "v1.31.0", nil, "b"), group("c", "v1.30.0", nil, "c"),
		group("", "v1.30.0", []string{"x/v1"}, "e", "f"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := render.Group(layers, nil); !cmp.Equal(got, []render.Alike{{}}) {
		t.Errorf("without clusters: %+v", got)
	}
}

// TestNamingFitsAllClusters: a chart that fits the rules of the original in one cluster alone is named by Application.
func TestNamingFitsAllClusters(t *testing.T) {
	newer := `{{ if semverCompare ">=1.31-0" .Capabilities.KubeVersion.Version }}` + releaseService + `{{ end }}`
	c := sample(t, map[string]string{"templates/newer.yaml": newer})
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{
		Name: "web-1", Namespace: "shop", Labels: map[string]string{shipper.AppLabel: "web"},
	}}
	for _, tc := range []struct {
		clusters []render.Cluster
		want     shipper.ChartNaming
	}{
		{[]render.Cluster{in("a", "v1.30.0")}, shipper.NamingByRelease},
		{[]render.Cluster{in("a", "v1.30.0"), in("b", "v1.31.0")}, shipper.NamingByApplication},
		{nil, shipper.NamingByApplication}, // a recent version is assumed
	} {
		got, err := c.NamingIn(t.Context(), rel, values.Layers{}, tc.clusters)
		if got != tc.want || err != nil {
			t.Errorf("%+v: %q, %v", tc.clusters, got, err)
		}
	}
}
