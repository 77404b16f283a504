// SPDX-License-Identifier: Apache-2.0

package rolloutblock

import (
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

func TestItWakesJustInTime(t *testing.T) {
	now := time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC)
	r := &Reconciler{clock: testclock.NewFakePassiveClock(now)}
	for name, tc := range map[string]struct {
		look time.Time
		want time.Duration
	}{
		"nothing changes with time":          {time.Time{}, 0},
		"the block starts or ends in a week": {now.AddDate(0, 0, 7), 7 * 24 * time.Hour},
		"it does so at this moment":          {now, time.Millisecond},
		"it did so while it was looked at":   {now.Add(-time.Second), time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			if got := r.until(tc.look); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
