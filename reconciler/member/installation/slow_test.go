// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/test/charts"
)

// packed is a Loader of one chart.
type packed struct{ chart *render.Chart }

func (p packed) Load(context.Context, string, shipper.Chart, string) (*render.Chart, error) { return p.chart, nil }

// TestASlowClusterIsWaitedFor: the time for rendering is not that of the cluster, which has as long as for other requests.
func TestASlowClusterIsWaitedFor(t *testing.T) {
	archive, err := charts.PackFiles("looks", "0.0.1", map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: looks\nversion: 0.0.1\n",
		"templates/off.yaml": `{{ $_ := lookup "v1" "Secret" .Release.Namespace "password" }}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		chart, err := render.Open(archive.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		slow := func(ctx context.Context, _ render.Query) (map[string]any, error) {
			select {
			case <-time.After(6 * time.Second):
				return nil, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		_, err = NewRenderer(packed{chart}, nil, LoadTimeout).Render(t.Context(), Source{}, render.Target{
			ReleaseName: "web-1", Namespace: "shop", App: "web",
		}, slow)
		if err != nil {
			t.Error(err)
		}
	})
}
