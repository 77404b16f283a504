// SPDX-License-Identifier: Apache-2.0

// Package charts measures how soon a constraint is resolved among many versions, and what rendering costs beside Helm's engine.
package charts

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	helmengine "helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/test/bench/table"
	"shipper.dev/shipper/test/charts"
)

const (
	versions  = 20 // of each chart
	maxWarm   = 0.001
	maxRender = 1.1
	rounds    = 7
	namespace = "bench"
	// unchanged is what parsing again would take many times of.
	unchanged = 0.1
)

// Charts is an index of many charts of twenty versions each, and a chart of 30 objects.
type Charts struct {
	// Charts is how many are in the index.
	Charts int
	// Renders is how many of the chart of 30 objects are measured.
	Renders int
}

// Run measures.
func (c Charts) Run(ctx context.Context, samples io.Writer) ([]table.Line, error) {
	lines, err := c.resolve(ctx, samples)
	if err != nil {
		return nil, fmt.Errorf("resolving: %w", err)
	}
	rendered, err := c.render(ctx, samples)
	return append(lines, rendered...), err
}

// resolve asks for a version of each chart: of an index that is not cached, of one that is, and of one that is to be looked
// at again and has not changed.
func (c Charts) resolve(ctx context.Context, samples io.Writer) ([]table.Line, error) {
	index, err := indexOf(c.Charts)
	if err != nil {
		return nil, err
	}
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(w, r, "index.yaml", time.Time{}, bytes.NewReader(index))
	}))
	defer server.Close()
	policy, err := outward.ParsePolicy(charts.URLs)
	if err != nil {
		return nil, err
	}
	want := func(i int) shipper.Chart {
		return shipper.Chart{Name: fmt.Sprintf("chart-%d", i%c.Charts), Version: "~1.7", RepoURL: server.URL + "/charts"}
	}
	var parsed, cold, warm, again []time.Duration
	for range rounds {
		took, err := timed(func() error { return yaml.Unmarshal(index, &indexFile{}) })
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, took)
		now := clocktesting.NewFakePassiveClock(time.Now())
		catalog := repository.NewCatalog(ctx, repository.Options{Repositories: policy, Clock: now})
		if took, err = timed(func() error { _, err := catalog.Resolve(ctx, namespace, want(0)); return err }); err != nil {
			return nil, err
		}
		cold = append(cold, took)
		for i := range c.Charts {
			took, err := timed(func() error { _, err := catalog.Resolve(ctx, namespace, want(i)); return err })
			if err != nil {
				return nil, err
			}
			warm = append(warm, took)
		}
		now.SetTime(now.Now().Add(time.Hour))
		before := asked.Load()
		if took, err = timed(func() error { return catalog.Refresh(ctx, namespace, want(0)) }); err != nil {
			return nil, err
		}
		again = append(again, took)
		if n := asked.Load() - before; n != 1 {
			return nil, fmt.Errorf("the repository was asked %d times for an index that is an hour old", n)
		}
	}
	for name, times := range map[string][]time.Duration{"parse": parsed, "cold": cold, "warm": warm, "unchanged": again} {
		if err := table.WriteSamples(samples, "Resolve/"+name, times); err != nil {
			return nil, err
		}
	}
	of := fmt.Sprintf("%d charts of %d versions: ", c.Charts, versions)
	return []table.Line{
		{Row: "charts", Of: of + "resolved for the first time (floor: a parser of YAML)", Ours: table.Median(cold), Floor: table.Median(parsed),
			Unit: table.Seconds},
		{Row: "charts", Of: of + "resolved from memory", Ours: table.Median(warm), Unit: table.Seconds, Most: table.Goal(maxWarm)},
		{Row: "charts", Of: of + "looked at again, unchanged (floor: a parser of YAML)", Ours: table.Median(again), Floor: table.Median(parsed),
			Unit: table.Seconds, Most: table.Goal(unchanged)},
	}, nil
}

// render renders the chart of 30 objects in turns with Helm, which reads of each object what it is. Ours reads them whole, checks
// render renders a chart of 30 objects for one Release after the other, each twice, and has Helm render it as often.
func (c Charts) render(ctx context.Context, samples io.Writer) ([]table.Line, error) {
	archive, err := charts.PackFiles("thirty", "1.0.0", thirtyObjects())
	if err != nil {
		return nil, err
	}
	ours, err := load(ctx, archive)
	if err != nil {
		return nil, err
	}
	helms, err := loader.LoadArchive(bytes.NewReader(archive.Bytes))
	if err != nil {
		return nil, err
	}
	values := shipper.ChartValues{"replicaCount": int64(3)}
	times := map[string][]time.Duration{}
	for i := range c.Renders {
		release := fmt.Sprintf("rel-%d", i)
		shipped := func() error { return ourRender(ctx, ours, &values, release) }
		for _, side := range []struct {
			name   string
			render func() error
		}{{"first", shipped}, {"again", shipped}, {"helm", func() error { return helmRender(helms, values, release) }}} {
			took, err := timed(side.render)
			if err != nil {
				return nil, err
			}
			times[side.name] = append(times[side.name], took)
		}
	}
	for name, times := range times {
		if err := table.WriteSamples(samples, "Render/side="+name, times); err != nil {
			return nil, err
		}
	}
	floor := table.Median(times["helm"])
	return []table.Line{{
		Row: "charts", Of: "30 objects rendered, read and labelled (floor: Helm renders and sorts)",
		Ours: table.Median(times["first"]), Floor: floor, Unit: table.Seconds,
	}, {
		Row: "charts", Of: "the same again",
		Ours: table.Median(times["again"]), Floor: floor, Unit: table.Seconds, Most: table.Goal(maxRender),
	}}, nil
}

// load has a catalog load a chart, as the binaries do.
func load(ctx context.Context, archive charts.Archive) (*render.Chart, error) {
	repo, err := charts.Start()
	if err != nil {
		return nil, err
	}
	defer repo.Close()
	repo.Publish(archive)
	policy, err := outward.ParsePolicy(charts.URLs)
	if err != nil {
		return nil, err
	}
	pinned := shipper.Chart{Name: archive.Name, Version: archive.Version, RepoURL: repo.URL}
	return repository.NewCatalog(ctx, repository.Options{Repositories: policy}).Load(ctx, namespace, pinned, archive.Digest)
}

// ourRender makes what installation writes.
func ourRender(ctx context.Context, ours *render.Chart, values *shipper.ChartValues, release string) error {
	t := render.Target{ReleaseName: release, Namespace: namespace, App: "app"}
	manifest, err := ours.Render(ctx, values, t)
	if err != nil {
		return err
	}
	_, err = manifest.Prepare(t)
	return err
}

// helmRender does what Helm does before it writes.
func helmRender(helms *helmchart.Chart, values map[string]any, release string) error {
	scope, err := chartutil.ToRenderValues(helms, values, chartutil.ReleaseOptions{Name: release, Namespace: namespace}, nil)
	if err != nil {
		return err
	}
	files, err := helmengine.Render(helms, scope)
	if err != nil {
		return err
	}
	_, _, err = releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	return err
}

// timed is how long something took.
func timed(do func() error) (time.Duration, error) {
	began := time.Now()
	err := do()
	return time.Since(began), err
}
