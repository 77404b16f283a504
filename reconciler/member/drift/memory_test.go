// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWhoWritesAgainAndAgainIsAnsweredEverLater(t *testing.T) {
	now := time.Unix(1000, 0)
	var c Comparison
	var got []time.Duration
	for range 9 {
		wait := c.Due(now)
		got = append(got, wait)
		now = now.Add(wait)
		c.Corrected, c.At = c.Corrections(now)+1, now
	}
	want := []time.Duration{0, 5, 10, 20, 40, 80, 160, 300, 300}
	for i := range want {
		want[i] *= time.Second
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pauses: -want +got:\n%s", diff)
	}
	later := now.Add(11 * time.Minute)
	if c.Due(later) != 0 || c.Corrections(later) != 0 {
		t.Errorf("after 11 minutes %d corrections count and it waits for %s", c.Corrections(later), c.Due(later))
	}
}
