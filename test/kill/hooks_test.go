// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/env"
)

// TestHooksRunOnceThoughKilledAfterEveryWrite installs a chart with hooks while the reconciler is killed after every write,
// and counts all Jobs that were ever created.
func TestHooksRunOnceThoughKilledAfterEveryWrite(t *testing.T) {
	env.Nightly(t, "test/e2e runs the hooks of a chart, test/integration that a lost answer repeats none")
	archive, err := charts.PackFiles("hooked", "0.0.1", charts.Hooked(charts.InstallHooks))
	if err != nil {
		t.Fatal(err)
	}
	world.Charts.Publish(archive)
	s := begin(t)
	var mu sync.Mutex
	made := []string{}
	for name, c := range world.Clusters {
		w, err := c.Watch(s.Ctx, &batchv1.JobList{}, client.InNamespace(s.Namespace))
		s.Must("watching Jobs", err)
		defer w.Stop()
		go func() {
			for event := range w.ResultChan() {
				if event.Type == watch.Added {
					mu.Lock()
					made = append(made, fmt.Sprint(name, " ", event.Object.(*batchv1.Job).Name))
					mu.Unlock()
				}
			}
		}()
	}
	app := s.application(appName, "0.0.1", 1, allIn)
	app.Spec.Template.Chart.Name = "hooked"
	world.gate.count()
	world.gate.decide(unanswered)
	s.Patience = perseverance
	s.Must("creating the application", world.Management.Create(s.Ctx, app))
	s.Completes(s.Release(0))
	s.rests()
	world.gate.decide(spared)
	writes, lives := world.gate.count()
	s.Logf("%d writes, %d lives", len(writes), lives)

	want := []string{}
	for name := range world.Clusters {
		for _, hook := range []string{"post-install-hook-failed", "pre-install-before-hook-creation", "pre-install-hook-succeeded"} {
			want = append(want, name+" "+hook)
		}
	}
	slices.Sort(want)
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(made)
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("-want +made:\n%s\n%s", diff, strings.Join(writes, "\n"))
	}
}
