// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"log"
	"os"
	"strings"
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
)

// TestHelmDoesNotLogValues merges values for all charts with others for one, which do not fit together: Helm prints them.
func TestHelmDoesNotLogValues(t *testing.T) {
	const canary = "k33p-this"
	c := sample(t, map[string]string{"charts/inner/Chart.yaml": "apiVersion: v2\nname: inner\nversion: 1.2.3\n"})
	with := func(setting any) map[string]any { return map[string]any{"of": map[string]any{"all": setting}} }
	values := &shipper.ChartValues{
		"global": with(map[string]any{"a": int64(1)}), "inner": map[string]any{"global": with(canary + "\n" + canary)},
	}
	logged := func(discreetly bool) string {
		var out strings.Builder
		log.SetOutput(&out)
		if discreetly {
			log.SetOutput(render.WithoutValueWarnings(&out))
		}
		defer log.SetOutput(os.Stderr)
		if _, err := c.Render(t.Context(), values, target); err != nil {
			t.Fatal(err)
		}
		log.Print("http: TLS handshake error: warning: EOF")
		return out.String()
	}
	if !strings.Contains(logged(false), canary) {
		t.Error("Helm does not print values any more: WithoutValueWarnings is no longer needed")
	}
	got := logged(true)
	others := strings.HasSuffix(got, " http: TLS handshake error: warning: EOF\n")
	if strings.Contains(got, canary) || strings.Count(got, "\n") != 1 || !others {
		t.Errorf("logged %q", got)
	}
}
