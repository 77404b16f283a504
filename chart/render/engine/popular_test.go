// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"

	"shipper.dev/shipper/chart/render/engine"
	"shipper.dev/shipper/test/charts"
)

// TestRendersPopularChartsLikeHelm renders widely used charts. Lines that are random, as passwords and keys, are those that differ when
// Helm renders twice.
func TestRendersPopularChartsLikeHelm(t *testing.T) {
	charts.EachPopular(t, "../../..", func(t *testing.T, of charts.PopularArchive) {
		c, err := loader.LoadArchive(bytes.NewReader(of.Bytes))
		if err != nil {
			t.Fatal(err)
		}
		if err := chartutil.ProcessDependenciesWithMerge(c, of.Values); err != nil {
			t.Fatal(err)
		}
		compareRandom(t, c, func() chartutil.Values { return popularScope(t, c, of.Values, true) }, false)
		compareRandom(t, c, func() chartutil.Values { return popularScope(t, c, of.Values, false) }, true)
	})
}

// popularScope is what templates see of a first installation, or of an upgrade.
func popularScope(t *testing.T, c *chart.Chart, values map[string]any, install bool) chartutil.Values {
	t.Helper()
	options := chartutil.ReleaseOptions{Name: "shop", Namespace: "default", Revision: 1, IsInstall: install, IsUpgrade: !install}
	scope, err := chartutil.ToRenderValues(c, values, options, nil)
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

// compareRandom compares a rendering with two of Helm, which may fail where charts look for passwords of the release before.
func compareRandom(t *testing.T, c *chart.Chart, scope func() chartutil.Values, mayFail bool) {
	t.Helper()
	got, err := engine.Render(t.Context(), c, scope())
	once, wantErr := byHelm(c, scope())
	if wantErr != nil {
		if !mayFail || err == nil {
			t.Errorf("error %v, in Helm %v", err, wantErr)
		}
		return
	}
	again, wantErr := byHelm(c, scope())
	if err := cmp.Or(err, wantErr); err != nil {
		t.Fatalf("error %v, in Helm %v", err, wantErr)
	}
	want, random := withoutRandom(once, again, got)
	if diff := gocmp.Diff(want, got); diff != "" || random > len(want)/2 {
		t.Errorf("%d of %d files are random (-want +got)\n%s", random, len(want), diff)
	}
}

// withoutRandom is what once has, with the lines of got where once and again differ. A file of another number of lines each time is
// got's own. It counts those that are random.
func withoutRandom(once, again, got map[string]string) (want map[string]string, random int) {
	want = make(map[string]string, len(once))
	for name, text := range once {
		if text == again[name] {
			want[name] = text
			continue
		}
		random++
		lines, other, ours := strings.Split(text, "\n"), strings.Split(again[name], "\n"), strings.Split(got[name], "\n")
		if len(lines) != len(other) || len(lines) != len(ours) {
			want[name] = got[name]
			continue
		}
		for i := range lines {
			if lines[i] != other[i] {
				lines[i] = ours[i]
			}
		}
		want[name] = strings.Join(lines, "\n")
	}
	return want, random
}

// TestRandomLinesAloneAreLeftOut is about the comparison itself.
func TestRandomLinesAloneAreLeftOut(t *testing.T) {
	once := map[string]string{"a": "password: x\nport: 1", "b": "port: 2"}
	again := map[string]string{"a": "password: y\nport: 1", "b": "port: 2"}
	want, random := withoutRandom(once, again, map[string]string{"a": "password: z\nport: 9", "b": "port: 9"})
	got := fmt.Sprint(want, random)
	if expected := fmt.Sprint(map[string]string{"a": "password: z\nport: 1", "b": "port: 2"}, 1); got != expected {
		t.Errorf("%s, want %s", got, expected)
	}
}
