// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	layers "shipper.dev/shipper/chart/values"
	"shipper.dev/shipper/test/charts"
)

// secretsOf are the Secrets of a manifest by name, as a cluster has them.
func secretsOf(m render.Manifest) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, o := range m.Objects {
		if o.GetKind() != "Secret" {
			continue
		}
		object := o.DeepCopy().Object
		data, _ := object["data"].(map[string]any)
		data = maps.Clone(data)
		if data == nil {
			data = map[string]any{}
		}
		texts, _ := object["stringData"].(map[string]any)
		for key, text := range texts {
			data[key] = base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(text)))
		}
		delete(object, "stringData")
		object["data"] = data
		out[o.GetName()] = object
	}
	return out
}

// madeAnew are the Secrets that charts make anew each time, with Helm as well: they do not look them up, or not all of their keys.
var madeAnew = map[string][]string{
	"ghost":  {"shop-ghost"},
	"harbor": {"shop-harbor-core", "shop-harbor-ingress", "shop-harbor-registry-htpasswd"},
}

// TestPopularChartsKeepTheirSecrets renders widely used charts, unedited, twice: what they look up is what the first rendering made.
func TestPopularChartsKeepTheirSecrets(t *testing.T) {
	charts.EachPopular(t, "../..", func(t *testing.T, of charts.PopularArchive) {
		c, err := render.Open(of.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		to := render.Target{Naming: shipper.NamingByApplication, ReleaseName: "shop-1", App: "shop", Namespace: "team"}
		values := shipper.ChartValues(of.Values)
		there := map[string]map[string]any{}
		find := func(_ context.Context, q render.Query) (map[string]any, error) {
			if q.Kind == "Secret" {
				return there[q.Name], nil
			}
			return nil, nil
		}
		first, err := c.RenderIn(t.Context(), &values, to, find)
		if err != nil {
			t.Fatal(err)
		}
		there = secretsOf(first)
		second, err := c.RenderIn(t.Context(), &values, to, find)
		if err != nil {
			t.Fatal(err)
		}
		var other []string
		for name, secret := range secretsOf(second) {
			if !cmp.Equal(there[name], secret) {
				other = append(other, name)
			}
		}
		slices.Sort(other)
		if diff := cmp.Diff(madeAnew[of.Name], other); diff != "" {
			t.Errorf("Secrets that are others in the next Release (-want +got):\n%s", diff)
		}
	})
}

// TestPopularChartsAreAdmitted judges widely used charts, unedited, as admission does: all but keda, which writes to kube-system, fit by
// Application.
func TestPopularChartsAreAdmitted(t *testing.T) {
	charts.EachPopular(t, "../..", func(t *testing.T, of charts.PopularArchive) {
		c, err := render.Open(of.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "shop-12345678-0", Labels: map[string]string{shipper.AppLabel: "shop"},
		}}
		values := shipper.ChartValues(of.Values)
		rel.Spec.Environment.Values = &values
		rel.Spec.Environment.Chart.Naming, err = c.NamingIn(t.Context(), rel, layers.LayersOf(&rel.Spec.Environment), nil)
		if err != nil || rel.Spec.Environment.Chart.Naming != shipper.NamingByApplication {
			t.Fatalf("%q, %v", rel.Spec.Environment.Chart.Naming, err)
		}
		if _, err := c.Judge(t.Context(), rel, render.Cluster{}); (err != nil) != (of.Name == "keda") {
			t.Error(err)
		}
	})
}
