// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/reconciler/retry"
)

// panics is a Renderer that panics.
type panics struct{}

func (panics) Render(context.Context, Source, render.Target, Find) (render.Manifest, error) {
	panic("a mistake")
}

func TestARenderingThatPanicsIsBroken(t *testing.T) {
	objects, err := (&rendering{renderer: panics{}}).render(t.Context(), Source{}, render.Target{}, nil)
	if reason, remedy := retry.ClassifyInCluster(err); objects != nil || reason != shipper.ChartError || remedy != retry.Wait {
		t.Errorf("got %v and %s, %v: %v", objects, reason, remedy, err)
	}
}

var errLoaded = errors.New("loaded")

// slowCharts is a Loader that takes three seconds.
type slowCharts struct{}

func (slowCharts) Load(ctx context.Context, _ string, _ shipper.Chart, _ string) (*render.Chart, error) {
	select {
	case <-time.After(3 * time.Second):
		return nil, errLoaded
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestASlowChartEndsAPassAndNotACommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for within, want := range map[time.Duration]error{LoadTimeout: errLoading, time.Minute: errLoaded} {
			_, err := NewRenderer(slowCharts{}, nil, within).Render(t.Context(), Source{}, render.Target{}, nil)
			if !errors.Is(err, want) {
				t.Errorf("within %s: %v, want %v", within, err, want)
			}
		}
	})
}
