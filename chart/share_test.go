// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"k8s.io/utils/clock"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// crowdedBy has a team do something as often as it can, and more, and tells how often it got to it at one time. Others have to be let
// through meanwhile, at once.
func crowdedBy(t *testing.T, attempts int, team, others func(ctx context.Context, i int, under func()) error) (most int) {
	t.Helper()
	release, reached := make(chan struct{}), make(chan struct{}, attempts)
	ended := make(chan error, attempts)
	for i := range attempts {
		go func() {
			ended <- team(t.Context(), i, func() {
				reached <- struct{}{}
				<-release
			})
		}()
	}
	synctest.Wait()
	most = len(reached)
	hurry, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := others(hurry, 0, func() {}); err != nil {
		t.Errorf("another team waits: %v", err)
	}
	close(release)
	for range attempts {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	return most
}

func TestLoadsOfOneTeamLeaveRoomToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCatalog(t.Context(), Options{Clock: clock.RealClock{}})
		load := func(namespace string) func(context.Context, int, func()) error {
			return func(ctx context.Context, i int, under func()) error {
				_, err := c.inFlight(ctx, namespace, fmt.Sprint(namespace, i), func() (any, error) {
					under()
					return nil, nil
				})
				return err
			}
		}
		if most := crowdedBy(t, 100, load("a"), load("b")); most != loadsEach {
			t.Errorf("one team loads %d at a time, want %d", most, loadsEach)
		}
	})
}

func TestALoadOfManyTeamsIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCatalog(t.Context(), Options{Clock: clock.RealClock{}})
		loads, ended := 0, make(chan error, 10)
		for i := range cap(ended) {
			go func() {
				_, err := c.inFlight(t.Context(), fmt.Sprint("team-", i), "the same", func() (any, error) {
					loads++
					time.Sleep(time.Second)
					return nil, nil
				})
				ended <- err
			}()
		}
		for range cap(ended) {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if loads != 1 {
			t.Errorf("it is loaded %d times", loads)
		}
	})
}

func TestRendersOfOneTeamLeaveRoomToOthers(t *testing.T) {
	synctest.Test(t, testRendersOfOneTeam)
}

func testRendersOfOneTeam(t *testing.T) {
	web := &Chart{renders: newRenderings(8, 1<<20), helm: &helmchart.Chart{
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
