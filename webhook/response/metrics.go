// SPDX-License-Identifier: Apache-2.0

package response

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count and time the answers.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	panics   *prometheus.CounterVec
}

// NewMetrics registers the webhook's metrics with registry.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shipper_webhook_requests_total",
			Help: "Admission requests answered. phase is mutate or validate; kind is the kind judged; " +
				"operation is CREATE, UPDATE or DELETE; " +
				"decision is allowed, invalid (422), blocked (403, a RolloutBlock), forbidden (403, the user), " +
				"unavailable (503) or failed (500).",
		}, []string{"phase", "kind", "operation", "decision"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "shipper_webhook_request_duration_seconds",
			Help: "Time from a decoded admission request to its answer. phase is mutate or validate; kind is the kind judged; " +
				"operation is CREATE, UPDATE or DELETE.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"phase", "kind", "operation"}),
		panics: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shipper_webhook_panics_total",
			Help: "Panics while judging that were recovered and answered with 500. phase is mutate or validate; " +
				"kind is the kind judged.",
		}, []string{"phase", "kind"}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.duration, m.panics} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering webhook metrics: %w", err)
		}
	}
	return m, nil
}

func (m *Metrics) observe(phase Phase, kind, operation string, decision Decision, took time.Duration) {
	m.requests.WithLabelValues(string(phase), kind, operation, string(decision)).Inc()
	m.duration.WithLabelValues(string(phase), kind, operation).Observe(took.Seconds())
}

func (m *Metrics) countPanic(phase Phase, kind string) {
	m.panics.WithLabelValues(string(phase), kind).Inc()
}
