// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// newLag is the metric of the time from a change to its Release, registered if there is a registry.
func newLag(registry prometheus.Registerer) (prometheus.Histogram, error) {
	lag := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "shipper_selection_lag_seconds",
		Help: "Time from the first change of selected objects until a Release of their content was created; a second without further " +
			"changes, 5 seconds at most, are part of it.",
		Buckets: []float64{.5, 1, 1.25, 1.5, 2, 3, 5, 7.5, 10, 30, 60},
	})
	if registry == nil {
		return lag, nil
	}
	if err := registry.Register(lag); err != nil {
		return nil, fmt.Errorf("registering metrics of selections: %w", err)
	}
	return lag, nil
}
