// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// metrics are those of checks. None has a label by Application.
type metrics struct {
	measurements *prometheus.CounterVec
	lag          prometheus.Histogram
}

func newMetrics() *metrics {
	m := &metrics{
		measurements: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shipper_check_measurements_total",
			Help: "Number of measurements of checks. Label result: Passed, Failed, Inconclusive, or Error if there was no value.",
		}, []string{"result"}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "shipper_check_lag_seconds",
			Help:    "Time from when a measurement was due until it began.",
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}),
	}
	for _, v := range []shipper.CheckVerdict{shipper.VerdictPassed, shipper.VerdictFailed, shipper.VerdictInconclusive, shipper.VerdictError} {
		m.measurements.WithLabelValues(string(v))
	}
	return m
}

func (m *metrics) register(to prometheus.Registerer) error {
	return errors.Join(to.Register(m.measurements), to.Register(m.lag))
}
