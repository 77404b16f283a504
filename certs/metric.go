// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/x509"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// notAfter describes the metric of when certificates end.
var notAfter = prometheus.NewDesc("shipper_webhook_certificate_not_after_timestamp_seconds",
	"Unix time after which the certificate is not valid any more. Label certificate: serving is what the webhook serves "+
		"with, 0 while there is none; authority is the CA that signs it, absent if it is not known.",
	[]string{"certificate"}, nil)

// ends publishes when certificates end.
type ends struct {
	// current returns the serving certificate and its authority, nil if unknown.
	current func() (leaf, authority *x509.Certificate)
}

var _ prometheus.Collector = ends{}

// Describe is prometheus.Collector.
func (ends) Describe(c chan<- *prometheus.Desc) { c <- notAfter }

// Collect is prometheus.Collector.
func (e ends) Collect(c chan<- prometheus.Metric) {
	leaf, authority := e.current()
	serving := 0.0
	if leaf != nil {
		serving = unix(leaf.NotAfter)
	}
	c <- prometheus.MustNewConstMetric(notAfter, prometheus.GaugeValue, serving, "serving")
	if authority != nil {
		c <- prometheus.MustNewConstMetric(notAfter, prometheus.GaugeValue, unix(authority.NotAfter), "authority")
	}
}

func unix(t time.Time) float64 { return float64(t.UnixNano()) / float64(time.Second) }

func register(registry prometheus.Registerer, current func() (leaf, authority *x509.Certificate)) error {
	if err := registry.Register(ends{current}); err != nil {
		return fmt.Errorf("registering certificate metric: %w", err)
	}
	return nil
}
