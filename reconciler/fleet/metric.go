// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"maps"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of clusters.
var (
	clusterReady = prometheus.NewDesc("shipper_cluster_ready",
		"1 while the reconciler that leads can work with a cluster, 0 while it cannot. Label cluster: the Cluster's name. Absent "+
			"while the cluster is being connected to for the first time, and where no reconciler leads.",
		[]string{"cluster"}, nil)
	credentialsEnd = prometheus.NewDesc("shipper_cluster_credentials_not_after_timestamp_seconds",
		"When the token or client certificate of a cluster ends, in seconds since 1970. Label cluster: the Cluster's name. Absent "+
			"for those that do not end, and where no reconciler leads.",
		[]string{"cluster"}, nil)
	credentialsValid = prometheus.NewDesc("shipper_cluster_credentials_valid",
		"0 when the token or client certificate of a cluster has ended, or ends soon and is not renewed, otherwise 1: the Cluster's "+
			"condition CredentialsValid. Label cluster: the Cluster's name. Absent for those that do not end, and where no reconciler leads.",
		[]string{"cluster"}, nil)
)

// readiness publishes which clusters can be worked with, and for how long.
type readiness struct{ fleet *Fleet }

var _ prometheus.Collector = readiness{}

// Describe is prometheus.Collector.
func (readiness) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{clusterReady, credentialsEnd, credentialsValid} {
		c <- d
	}
}

// Collect is prometheus.Collector.
func (r readiness) Collect(c chan<- prometheus.Metric) {
	r.fleet.mu.Lock()
	ready := make(map[string]float64, len(r.fleet.connections))
	for name, connection := range r.fleet.connections {
		switch {
		case connection.state.Ready:
			ready[name] = 1
		case !connection.state.Pending:
			ready[name] = 0
		}
	}
	credentials := maps.Clone(r.fleet.credentials)
	r.fleet.mu.Unlock()
	gauge := func(d *prometheus.Desc, value float64, cluster string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, cluster)
	}
	for name, value := range ready {
		gauge(clusterReady, value, name)
	}
	for name, known := range credentials {
		valid := 1.0
		if known.Reason != "" {
			valid = 0
		}
		gauge(credentialsValid, valid, name)
		if known.NotAfter != 0 {
			gauge(credentialsEnd, float64(known.NotAfter), name)
		}
	}
}

// Publish adds the metrics of which clusters can be worked with, and for how long, to a registry.
func (f *Fleet) Publish(registry prometheus.Registerer) error {
	if err := registry.Register(readiness{f}); err != nil {
		return fmt.Errorf("registering the metric of clusters: %w", err)
	}
	return nil
}
