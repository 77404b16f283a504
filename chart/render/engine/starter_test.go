// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	helm "helm.sh/helm/v3/pkg/engine"

	"shipper.dev/shipper/chart/render/engine"
)

// TestRendersTheStarterLikeHelm renders what `helm create` makes, with everything in it switched on.
func TestRendersTheStarterLikeHelm(t *testing.T) {
	folder, err := chartutil.Create("starter", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, err := loader.LoadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{
		"ingress": map[string]any{
			"enabled": true, "tls": []any{map[string]any{"secretName": "s", "hosts": []any{"a", "b"}}},
		},
		"autoscaling":    map[string]any{"enabled": true, "targetMemoryUtilizationPercentage": int64(70)},
		"podAnnotations": map[string]any{"a": "b"}, "resources": map[string]any{"limits": map[string]any{"cpu": "1"}},
		"tolerations": []any{map[string]any{"key": "x"}}, "nodeSelector": map[string]any{"disk": "ssd"},
	}
	render := func(by func(chartutil.Values) (map[string]string, error)) map[string]string {
		t.Helper()
		options := chartutil.ReleaseOptions{Name: "rel", Namespace: "ns", Revision: 1, IsInstall: true}
		scope, err := chartutil.ToRenderValues(c, values, options, nil)
		if err != nil {
			t.Fatal(err)
		}
		files, err := by(scope)
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	want := render(func(scope chartutil.Values) (map[string]string, error) { return helm.Engine{}.Render(c, scope) })
	got := render(func(scope chartutil.Values) (map[string]string, error) { return engine.Render(t.Context(), c, scope) })
	if diff := cmp.Diff(want, got); diff != "" || len(got) < 8 {
		t.Errorf("%d files: %s", len(got), diff)
	}
}
