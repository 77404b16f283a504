// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/progress"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// readTimeout bounds how long a scrape waits for the cache.
const readTimeout = 2 * time.Second

// metrics are those of rollouts that go on by themselves. None has a label by Application.
type metrics struct {
	// ctx lives as long as the process: scrapes come without one.
	ctx   context.Context
	cache client.Reader
	clock clock.PassiveClock
	moves *prometheus.CounterVec
	// lag is how long after a step was due and achieved the next one was requested.
	lag           prometheus.Histogram
	count, oldest *prometheus.Desc
}

// newMetrics reads from a cache. ctx is needed for the time of the call only.
func newMetrics(ctx context.Context, cache client.Reader, clock clock.PassiveClock) *metrics {
	m := &metrics{
		ctx: context.WithoutCancel(ctx), cache: cache, clock: clock,
		moves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shipper_rollout_moves_total",
			Help: "What Shipper did to Releases by itself: StepDue went on, RolloutFailed went back, Aborted was given up.",
		}, []string{"why"}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "shipper_progress_lag_seconds",
			Help:    "Time from when a step was due and achieved until the next one was requested, where nothing held it.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}),
		count: prometheus.NewDesc("shipper_rollouts",
			"Releases that go on by themselves, by the reason of their condition Advancing.", []string{"reason"}, nil),
		oldest: prometheus.NewDesc("shipper_rollout_oldest_step_seconds",
			"Time since the step was requested, of the Release with that reason for which it is longest ago.", []string{"reason"}, nil),
	}
	for _, why := range []string{progress.StepDue, progress.RolloutFailed, progress.Aborted} { // or an increase from none is not seen
		m.moves.WithLabelValues(why)
	}
	return m
}

// Describe is prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	m.moves.Describe(to)
	m.lag.Describe(to)
	to <- m.count
	to <- m.oldest
}

// Collect is prometheus.Collector. It counts what the cache has.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.moves.Collect(to)
	m.lag.Collect(to)
	ctx, cancel := context.WithTimeout(m.ctx, readTimeout)
	defer cancel()
	var all shipper.ReleaseList
	if m.cache.List(ctx, &all, client.UnsafeDisableDeepCopy) != nil {
		return
	}
	count, oldest, now := map[string]int{}, map[string]time.Duration{}, m.clock.Now()
	for i := range all.Items {
		is, c := &all.Items[i].Status, shipper.FindCondition(all.Items[i].Status.Conditions, shipper.ReleaseAdvancing)
		if c == nil || is.Progress == nil {
			continue
		}
		count[c.Reason]++
		oldest[c.Reason] = max(oldest[c.Reason], now.Sub(is.Progress.RequestedTime.Time))
	}
	for reason, n := range count {
		to <- prometheus.MustNewConstMetric(m.count, prometheus.GaugeValue, float64(n), reason)
		to <- prometheus.MustNewConstMetric(m.oldest, prometheus.GaugeValue, oldest[reason].Seconds(), reason)
	}
}

// moved counts what was done to a Release, as it was stored before.
func (m *metrics) moved(rel *shipper.Release, d progress.Decision) {
	if d.Abort {
		m.moves.WithLabelValues(progress.Aborted).Inc()
		return
	}
	m.moves.WithLabelValues(d.Move.Why).Inc()
	is, executed := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseAdvancing),
		shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseStrategyExecuted)
	if d.Move.Why != progress.StepDue || d.Progress.Next == nil || is == nil || is.Reason != shipper.AdvancingSoaking || executed == nil {
		return
	}
	since := d.Progress.Next.Time.Time
	if executed.LastTransitionTime.After(since) {
		since = executed.LastTransitionTime.Time
	}
	m.lag.Observe(max(0, m.clock.Now().Sub(since).Seconds()))
}
