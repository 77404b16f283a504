// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/test/await"
	"shipper.dev/shipper/test/charts"
)

// TestRenderRemembers has a chart that makes up a word whenever its templates run.
func TestRenderRemembers(t *testing.T) {
	million := shipper.ChartValues{"million": int64(1000000)}
	archive, err := charts.PackFiles("sample", "0.0.1", map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: sample\nversion: 0.0.1\n",
		"templates/all.yaml": `
apiVersion: v1
kind: Service
metadata: {name: web, labels: {shipper-lb: production}}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}, annotations: {word: {{ randAlpha 20 }}, million: "{{ .Values.million }}"}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}
`,
	})
	if err != nil {
		t.Fatal(err)
	}
	first := render.Target{ReleaseName: "web-1", Namespace: "default", App: "web", KubeVersion: "v1.37.1", APIVersions: []string{"v1"}}
	other := func(change func(*render.Target)) render.Target {
		target := first
		change(&target)
		return target
	}
	tests := map[string]struct {
		target render.Target
		values shipper.ChartValues
		same   bool
	}{
		"the same again":                  {first, million, true},
		"of another Application":          {other(func(t *render.Target) { t.App = "b" }), million, true},
		"a number that is written alike":  {first, shipper.ChartValues{"million": float64(1000000)}, false},
		"of another Release":              {other(func(t *render.Target) { t.ReleaseName = "web-2" }), million, false},
		"in another namespace":            {other(func(t *render.Target) { t.Namespace = "b" }), million, false},
		"for another version":             {other(func(t *render.Target) { t.KubeVersion = "v1.36.0" }), million, false},
		"for a cluster that has more":     {other(func(t *render.Target) { t.APIVersions = []string{"v1", "v2"} }), million, false},
		"with another value among others": {first, shipper.ChartValues{"million": int64(1000000), "a": map[string]any{"b": "c"}}, false},
	}
	word := func(m render.Manifest) string { return m.Objects[1].GetAnnotations()["word"] }
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, room := range []int64{32 << 20, 1} {
				loaded, err := render.NewCache(8, room).Open(archive.Bytes)
				if err != nil {
					t.Fatal(err)
				}
				before := renderFor(t, loaded, million, first)
				kept := before.Objects[1].DeepCopy()
				if _, err := before.Prepare(first); err != nil {
					t.Fatal(err)
				}
				got := renderFor(t, loaded, tc.values, tc.target)
				if same, want := word(got) == word(before), tc.same && room > 1; same != want {
					t.Errorf("with room for %d bytes it is rendered once: %v, want %v", room, same, want)
				}
				if diff := cmp.Diff(kept, &before.Objects[1]); diff != "" {
					t.Errorf("what is shared was changed: %s", diff)
				}
			}
		})
	}
}

// TestALateFailureIsFoundByALaterCall has callers that leave long before the chart has made a key, and then has no Deployment.
func TestALateFailureIsFoundByALaterCall(t *testing.T) {
	archive, err := charts.PackFiles("sample", "0.0.1", map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: sample\nversion: 0.0.1\n", "templates/service.yaml": service + `{{ $_ := genPrivateKey "rsa" }}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := render.NewCache(8, 32<<20).Open(archive.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	await.Eventually(t, "the failure is not found", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if _, err := c.Render(ctx, nil, target); read(t, err).Retry {
			return err
		}
		return nil
	})
}

// renderFor renders for a target.
func renderFor(t *testing.T, c *render.Chart, values shipper.ChartValues, target render.Target) render.Manifest {
	t.Helper()
	m, err := c.Render(t.Context(), &values, target)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
