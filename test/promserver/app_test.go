// SPDX-License-Identifier: Apache-2.0

package promserver

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// noon is when tests begin.
var noon = time.Date(2030, time.January, 2, 12, 0, 0, 0, time.UTC)

func TestCountersGoOnWhenTrafficChanges(t *testing.T) {
	t.Parallel()
	now := noon
	a := newApp(func() time.Time { return now })
	a.Set("shop", "gone", 1, 0, 0)
	a.Set("shop", "web", 100, 0.25, 200*time.Millisecond)
	now = now.Add(10 * time.Second)
	a.Set("shop", "web", 10, 1, 20*time.Second)
	now = now.Add(1500 * time.Millisecond)
	a.Remove("shop", "gone")
	const want = `
# HELP http_request_duration_seconds Duration of requests.
# TYPE http_request_duration_seconds histogram
http_request_duration_seconds_bucket{namespace="shop",shipper_release="web",le="0.005"} 0
http_request_duration_seconds_bucket{namespace="shop",shipper_release="web",le="0.01"} 0
http_request_duration_seconds_bucket{namespace="shop",shipper_release="web",le="0.025"} 0
http_request_duration_seconds_bucket{namespace="shop",shipper_release="web",le="0.05"} 0
http_request_duration_seconds_bucket{namespace="shop",shipper_release="web",le="0.1"} 0
http_request_duration_seconds_bucket{namespace="shop",shipper_release="web",le="0.25"} 1000
http_request_duration_seconds_bucket{namespace="shop",shipper_release="web",le="0.5"} 1000
http_request_duration_seconds_bucket{namespace="shop",shipper_release="web",le="1"} 1000
http_request_duration_seconds_bucket{namespace="shop",shipper_release="web",le="2.5"} 1000
http_request_duration_seconds_bucket{namespace="shop",shipper_release="web",le="5"} 1000
http_request_duration_seconds_bucket{namespace="shop",shipper_release="web",le="10"} 1000
http_request_duration_seconds_bucket{namespace="shop",shipper_release="web",le="+Inf"} 1015
http_request_duration_seconds_sum{namespace="shop",shipper_release="web"} 500
http_request_duration_seconds_count{namespace="shop",shipper_release="web"} 1015
# HELP http_requests_total Requests by status code.
# TYPE http_requests_total counter
http_requests_total{code="200",namespace="shop",shipper_release="web"} 750
http_requests_total{code="500",namespace="shop",shipper_release="web"} 265
`
	if err := testutil.CollectAndCompare(a, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
