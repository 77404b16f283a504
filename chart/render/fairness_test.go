// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	helmchart "helm.sh/helm/v3/pkg/chart"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
)

// chartOf is a chart of one Deployment.
func chartOf(renders *Cache, metadata string) *Chart {
	return &Chart{renders: renders, helm: &helmchart.Chart{
		Metadata: &helmchart.Metadata{APIVersion: "v2", Name: "web", Version: "0.0.1"},
		Templates: []*helmchart.File{{Name: "templates/all.yaml", Data: []byte(`
apiVersion: apps/v1
kind: Deployment
metadata: ` + metadata + `
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}
`)}},
	}}
}

func TestRendersOfOneTeamLeaveRoomToOthers(t *testing.T) {
	synctest.Test(t, testRendersOfOneTeam)
}

func testRendersOfOneTeam(t *testing.T) {
	web := chartOf(NewCache(8, 1<<20), "{name: web}")
	render := func(namespace string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := web.Render(ctx, &shipper.ChartValues{}, Target{ReleaseName: "web-1", Namespace: namespace, App: "web"})
		return err
	}
	for range 8 / teamShare {
		web.renders.room.Wait("a")
	}
	if err := render("b"); err != nil {
		t.Errorf("another team waits: %v", err)
	}
	if err := render("a"); err == nil {
		t.Error("a team that has its part renders more")
	}
	web.renders.room.Leave("a")
	if err := render("a"); err != nil {
		t.Error(err)
	}
}

// TestARequestThatWaitsLongIsStillRendered has a team wait longer than a rendering may last, as when thousands of Releases are rendered
// again for a new version of a cluster.
func TestARequestThatWaitsLongIsStillRendered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := chartOf(NewCache(8, 1<<20), "{name: web}")
		for range 8 / teamShare {
			web.renders.room.Wait("a")
		}
		time.AfterFunc(10*maxRenderTime, func() { web.renders.room.Leave("a") })
		if _, err := web.Render(t.Context(), nil, Target{ReleaseName: "web-1", Namespace: "a", App: "web"}); err != nil {
			t.Error(err)
		}
	})
}

// TestAChartThatLooksUpWaitsForASlotAlone: the wait of one pass for the slots of others is short, and no fault of the chart; rendering
// has its whole time after that.
func TestAChartThatLooksUpWaitsForASlotAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := chartOf(NewCache(8, 1<<20), "{name: web}")
		for range 8 / teamShare {
			web.renders.room.Wait("a")
		}
		find := func(context.Context, Query) (map[string]any, error) { return nil, nil }
		begun := time.Now()
		_, err := web.RenderIn(t.Context(), nil, Target{ReleaseName: "web-1", Namespace: "a", App: "web"}, find)
		got := chart.AsError(err)
		const says = `chart "web" 0.0.1: it waits for other charts that are being rendered`
		want := chart.Error{Reason: shipper.InProgress, Message: says, Retry: true}
		if diff := cmp.Diff(want, *got, cmpopts.IgnoreFields(chart.Error{}, "Cause", "Public")); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if waited := time.Since(begun); waited != maxWait {
			t.Errorf("it waited %s", waited)
		}
		time.AfterFunc(maxWait-1, func() { web.renders.room.Leave("a") })
		if _, err := web.RenderIn(t.Context(), nil, Target{ReleaseName: "web-1", Namespace: "a", App: "web"}, find); err != nil {
			t.Error(err)
		}
	})
}

// TestARenderingContinuesWhenItsCallerLeaves: callers that cannot wait for a large chart find it rendered later.
func TestARenderingContinuesWhenItsCallerLeaves(t *testing.T) {
	web := chartOf(NewCache(8, 1<<20), "{name: web, annotations: {x: \"{{ range 1000000 }}{{ end }}\"}}")
	target := Target{ReleaseName: "web-1", Namespace: "a", App: "web"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := web.Render(ctx, nil, target); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a caller that leaves gets %v", err)
	}
	for range 8 / teamShare {
		web.renders.room.Wait("a") // until it has left its slot
	}
	if _, err := web.Render(ctx, nil, target); err != nil {
		t.Errorf("it is to be rendered again: %v", err)
	}
}

// TestAChartRenderedMeanwhileIsNotRenderedAgain has a chart that makes up a password.
func TestAChartRenderedMeanwhileIsNotRenderedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := chartOf(NewCache(1, 1<<20), "{name: web, annotations: {password: {{ randAlphaNum 16 | quote }}}}")
		web.renders.room.Wait("a")
		passwords := make(chan string, 2)
		for range cap(passwords) {
			go func() {
				manifest, err := web.Render(t.Context(), &shipper.ChartValues{}, Target{ReleaseName: "web-1", Namespace: "a", App: "web"})
				if err != nil {
					t.Error(err)
				}
				passwords <- fmt.Sprint(manifest.Objects)
			}()
		}
		synctest.Wait()
		web.renders.room.Leave("a")
		if one, other := <-passwords, <-passwords; one != other {
			t.Errorf("one has %s, the other %s", one, other)
		}
	})
}
