// SPDX-License-Identifier: Apache-2.0

package promserver

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sort"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The metrics of an App. Both have the labels namespace and shipper_release; the counter has code, too: 200 or 500.
const (
	// RequestsMetric is a counter.
	RequestsMetric = "http_requests_total"
	// DurationMetric is a histogram with the default buckets of client_golang.
	DurationMetric = "http_request_duration_seconds"
)

var (
	requests = prometheus.NewDesc(RequestsMetric, "Requests by status code.", []string{"code", "namespace", "shipper_release"}, nil)
	duration = prometheus.NewDesc(DurationMetric, "Duration of requests.", []string{"namespace", "shipper_release"}, nil)
)

// App serves the metrics that Releases would have with given traffic, on 127.0.0.1. The values are functions of the
// time of the scrape: they grow steadily, whatever else the machine does.
type App struct {
	server  *http.Server
	address string
	now     func() time.Time

	mu       sync.Mutex
	releases map[release]*traffic
}

// release names a Release.
type release struct{ namespace, name string }

// traffic is what a Release has served since the App started.
type traffic struct {
	since      time.Time // when the rates below were set, and what the totals are of
	perSecond  float64
	errorShare float64
	latency    time.Duration

	succeeded, failed float64
	buckets           []float64 // requests by the bound that they do not exceed, not cumulative; the last is +Inf
	seconds           float64   // sum of durations
}

// StartApp starts an App without Releases.
func StartApp() (*App, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	a := newApp(time.Now)
	a.address = listener.Addr().String()
	go func() {
		if err := a.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // nothing else closes the listener
		}
	}()
	return a, nil
}

// newApp returns an App with a clock that does not listen yet.
func newApp(now func() time.Time) *App {
	a := &App{now: now, releases: map[release]*traffic{}}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(a)
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	a.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	return a
}

// Address is the host and port, for a Target.
func (a *App) Address() string { return a.address }

// Close stops the App: scrapes fail from then on.
func (a *App) Close() error { return a.server.Close() }

// Set sets the traffic of a Release from now on. errorShare, between 0 and 1, is the share of requests with code 500;
// the others have 200. All requests take as long as latency says. The counters go on from where they are, and start
// at 0 for a new Release.
func (a *App) Set(namespace, name string, requestsPerSecond, errorShare float64, latency time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, key := a.now(), release{namespace, name}
	t := a.releases[key]
	if t == nil {
		t = &traffic{since: now, buckets: make([]float64, len(prometheus.DefBuckets)+1)}
		a.releases[key] = t
	}
	t.advance(now)
	t.perSecond, t.errorShare, t.latency = requestsPerSecond, errorShare, latency
}

// Remove removes the series of a Release, as if its last Pod were gone.
func (a *App) Remove(namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.releases, release{namespace, name})
}

// advance adds the requests up to a time to the totals.
func (t *traffic) advance(now time.Time) {
	served := t.perSecond * now.Sub(t.since).Seconds()
	t.since = now
	t.failed += served * t.errorShare
	t.succeeded += served * (1 - t.errorShare)
	t.seconds += served * t.latency.Seconds()
	t.buckets[sort.SearchFloat64s(prometheus.DefBuckets, t.latency.Seconds())] += served
}

// Describe implements prometheus.Collector.
func (*App) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- requests
	descriptions <- duration
}

// Collect implements prometheus.Collector. All values are of one moment, so that the ratio of two counters is exact.
func (a *App) Collect(metrics chan<- prometheus.Metric) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	for key, t := range a.releases {
		t.advance(now)
		for code, total := range map[string]float64{"200": t.succeeded, "500": t.failed} {
			metrics <- prometheus.MustNewConstMetric(requests, prometheus.CounterValue, total, code, key.namespace, key.name)
		}
		cumulative, sum := map[float64]uint64{}, 0.0
		for i, bound := range prometheus.DefBuckets {
			sum += t.buckets[i]
			cumulative[bound] = uint64(sum)
		}
		count := uint64(sum + t.buckets[len(prometheus.DefBuckets)])
		metrics <- prometheus.MustNewConstHistogram(duration, count, t.seconds, cumulative, key.namespace, key.name)
	}
}
