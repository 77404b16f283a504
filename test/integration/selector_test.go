// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestPodsWithOtherLabelsLoseNoTraffic installs a Release whose Pods, and whose Service's selector in the chart, have another
// label than those of the one that serves.
func TestPodsWithOtherLabelsLoseNoTraffic(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, west)
	s.installed("web-1")
	s.scale("web-1", 100, 2, west)
	s.scaled("web-1")
	s.weigh("web-1", 100, west)
	s.weighed("web-1")
	s.soon("the first does not serve", s.serves(map[string]int{"web-1": 2}))

	s.takeOver("web-1", false)
	s.install("web-2", "test-nginx", "0.0.1", shipper.ChartValues{"service": map[string]any{"name": "renamed"}}, west)
	s.installed("web-2")
	s.scale("web-2", 100, 2, west)
	s.scaled("web-2")
	s.weigh("web-2", 0, west)
	s.weighed("web-2")
	s.weighed("web-1")
	if wrong := s.serves(map[string]int{"web-1": 2})(); wrong != "" {
		t.Errorf("the first serves no more before the second does: %s", wrong)
	}
	s.weigh("web-2", 100, west)
	s.weighed("web-2")
	s.soon("both do not serve", s.serves(map[string]int{"web-1": 2, "web-2": 2}))
}
