// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// maxClusters bounds the clusters that a warning names.
const maxClusters = 5

// WithoutServer says in which clusters a Check has no server to ask: it names none, and neither do they. Empty: it has one in each.
func WithoutServer(spec *shipper.CheckSpec, clusters []shipper.Cluster) string {
	if spec.Prometheus == nil || spec.Prometheus.Address != "" {
		return ""
	}
	var lacking []string
	for i := range clusters {
		if clusters[i].Spec.Metrics == nil {
			lacking = append(lacking, clusters[i].Name)
		}
	}
	if len(lacking) == 0 {
		return ""
	}
	more := ""
	if n := len(lacking) - maxClusters; n > 0 {
		lacking, more = lacking[:maxClusters], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("there is no Prometheus server to measure by in %s%s: the check is undecided there, and rollouts hold, until an "+
		"administrator sets spec.metrics of the Cluster, or the Check names prometheus.address", strings.Join(lacking, ", "), more)
}
