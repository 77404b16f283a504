// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestRendersOfOneTeamLeaveRoomToOthers(t *testing.T) {
	synctest.Test(t, testRendersOfOneTeam)
}

func testRendersOfOneTeam(t *testing.T) {
	web := crowded()
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

// crowded is a chart with room for eight renderings.
func crowded() *Chart {
	return &Chart{renders: newRenderings(8, 1<<20), helm: &helmchart.Chart{
		Metadata: &helmchart.Metadata{APIVersion: "v2", Name: "web", Version: "0.0.1"},
		Templates: []*helmchart.File{{Name: "templates/all.yaml", Data: []byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}
`)}},
	}}
}

// TestWhoWaitsLongForHisTurnIsRenderedYet has a team wait longer than a rendering may last, as when thousands of Releases are rendered
// anew for another version of a cluster.
func TestWhoWaitsLongForHisTurnIsRenderedYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crowded()
		for range 8 / teamShare {
			web.renders.room.Wait("a")
		}
		time.AfterFunc(10*maxRenderTime, func() { web.renders.room.Leave("a") })
		if _, err := web.Render(t.Context(), nil, Target{ReleaseName: "web-1", Namespace: "a", App: "web"}); err != nil {
			t.Error(err)
		}
	})
}

func TestSumsOfOneTeamLeaveRoomToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guesses.Wait("a")
		ended := make(chan string, 2)
		for _, namespace := range []string{"a", "b"} {
			go func() {
				if _, err := slowSum([]byte("secret of "+t.Name()), namespace+"/web/Secret"); err != nil {
					t.Error(err)
				}
				ended <- namespace
			}()
		}
		if first := <-ended; first != "b" {
			t.Errorf("the sum of %s was made first", first)
		}
		guesses.Leave("a")
		<-ended
	})
}
