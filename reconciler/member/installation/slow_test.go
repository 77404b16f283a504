// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/reconciler/retry"
	"shipper.dev/shipper/test/charts"
)

// packed is a Loader of one chart.
type packed struct{ chart *render.Chart }

func (p packed) Load(context.Context, string, shipper.Chart, string) (*render.Chart, error) {
	return p.chart, nil
}

// TestASlowClusterIsWaitedFor: the time for rendering is not that of the cluster, which has as long as for other requests.
func TestASlowClusterIsWaitedFor(t *testing.T) {
	archive, err := charts.PackFiles("looks", "0.0.1", map[string]string{
		"Chart.yaml":         "apiVersion: v2\nname: looks\nversion: 0.0.1\n",
		"templates/off.yaml": `{{ $_ := lookup "v1" "Secret" .Release.Namespace "password" }}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		loaded, err := render.Open(archive.Bytes)
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
		_, err = NewRenderer(packed{loaded}, nil, LoadTimeout).Render(t.Context(), Source{}, render.Target{
			ReleaseName: "web-1", Namespace: "shop", App: "web",
		}, slow)
		if err != nil {
			t.Error(err)
		}
	})
}

// asks is a Renderer of a chart that looks up an object.
type asks struct{}

func (asks) Render(ctx context.Context, _ Source, _ render.Target, find Find) (render.Manifest, error) {
	_, err := find(ctx, render.Query{APIVersion: "v1", Kind: "Secret", Name: "password"})
	return render.Manifest{}, &chart.Error{Reason: shipper.ChartError, Retry: true, Cause: err, Message: "it looks up Secret: " + err.Error()}
}

// TestAClusterThatDoesNotAnswerIsNoFaultOfTheChart looks up an object in a cluster that is away, and one that may not be read.
func TestAClusterThatDoesNotAnswerIsNoFaultOfTheChart(t *testing.T) {
	for want, met := range map[string]error{
		shipper.ClusterUnreachable: context.DeadlineExceeded,
		shipper.ChartError:         apierrors.NewForbidden(corev1.Resource("secrets"), "password", nil),
	} {
		finds := func(context.Context, render.Query) (map[string]any, error) { return nil, met }
		_, err := (&rendering{renderer: asks{}}).render(t.Context(), Source{}, render.Target{}, finds)
		if reason, remedy := retry.ClassifyInCluster(err); reason != want || remedy != retry.Retry {
			t.Errorf("%v: it is %s, %v, want %s", err, reason, remedy, want)
		}
	}
}
