// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// TestMain is the reconciler when it is started as the simulation starts one.
func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	if len(os.Args) > 2 && os.Args[1] == "-reconciler" {
		if err := reconcile(context.Background(), os.Args[2], 2); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestAFewApplicationsOnAFewClusters(t *testing.T) {
	t.Parallel()
	t.Run("by region", func(t *testing.T) { t.Parallel(); simulateAFew(t, simulation{}) })
	t.Run("by placement", func(t *testing.T) { t.Parallel(); simulateAFew(t, simulation{placements: true}) })
	t.Run("of resources", func(t *testing.T) { t.Parallel(); simulateAFew(t, simulation{placements: true, resources: true}) })
}

func simulateAFew(t *testing.T, s simulation) {
	t.Helper()
	var out bytes.Buffer
	s.applications, s.clusters, s.replicas, s.rounds, s.changes, s.workers = 3, 2, 1, 1, 1, 2
	s.latency, s.pods, s.rest = time.Millisecond, 10*time.Millisecond, time.Second
	s.every, s.patience, s.profiles, s.out = time.Hour, 3*time.Minute, t.TempDir(), &out
	if err := s.run(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	var told []string
	for line := range strings.Lines(out.String()) {
		what, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		if !strings.Contains(what, "processors' time") { // of work that takes long enough
			told = append(told, what)
		}
	}
	want := []string{
		"3 Applications, 2 clusters; an answer takes 1ms, Pods take 10ms, 2 workers", "clusters", "first rollouts",
		"first rollouts, requests for each", "memory", "at rest for 1s", "one change", "change of all",
		"change of all, requests for each", "memory", "restart", "restart, requests for each",
		"restart, memory",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("-want +got:\n%s\n%s", diff, &out)
	}
	if !strings.Contains(out.String(), "0 writes") {
		t.Errorf("it writes at rest:\n%s", &out)
	}
	if _, err := os.Stat(filepath.Join(s.profiles, "heap.pprof")); err != nil {
		t.Error(err)
	}
}

func TestAFewRolloutsInWaves(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := simulation{
		applications: 3, clusters: 5, replicas: 1, workers: 2, waves: sizes{1, 2, 2}, tries: 2, latency: time.Millisecond,
		pods: 10 * time.Millisecond, every: time.Hour, patience: 3 * time.Minute, out: &out,
	}
	if err := s.run(t.Context()); err != nil && !strings.Contains(err.Error(), "writes of the status") { // so few are done at once
		t.Fatalf("%v\n%s", err, &out)
	}
	if n := strings.Count(out.String(), "at once: "); n != 4 { // two tries, the others, and their figure
		t.Errorf("%d lines about rollouts at once:\n%s", n, &out)
	}
}

func TestPercentiles(t *testing.T) {
	for percent, want := range map[int]float64{1: 1, 50: 5, 90: 9, 91: 10, 100: 10} {
		if got := percentile([]float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, percent); got != want {
			t.Errorf("the %d. percentile is %v, want %v", percent, got, want)
		}
	}
}

func TestShares(t *testing.T) {
	sample := func(spent int64, stack ...string) *profile.Sample { // the innermost first, as profiles have it
		s := &profile.Sample{Value: []int64{1, spent}}
		for _, name := range stack {
			s.Location = append(s.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name}}}})
		}
		return s
	}
	got := shares(&profile.Profile{Sample: []*profile.Sample{
		sample(50, "encoding/json.Unmarshal", "shipper.dev/shipper/reconciler/member/traffic.(*Worker).Work",
			"shipper.dev/shipper/reconciler/member.(*Reconciler).Reconcile"),
		sample(30, "runtime.scanobject", "runtime.gcBgMarkWorker"),
		sample(20, "shipper.dev/shipper/reconciler/fleet.strip", "k8s.io/client-go/tools/cache.(*Reflector).ListAndWatchWithContext"),
	}})
	if want := "traffic 50 %, collecting garbage 30 %, reading watches 20 %"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
