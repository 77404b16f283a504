// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"
)

// TestProgress does ten seconds of work, one thing each second.
func TestProgress(t *testing.T) {
	var out strings.Builder
	clock := testingclock.NewFakePassiveClock(time.Unix(0, 0))
	p := NewProgress(&out, clock)
	for i := range 10 {
		clock.SetTime(time.Unix(int64(i+1), 0))
		p.Printf("%d of 10", i+1)
	}
	if diff := cmp.Diff("3 of 10\n6 of 10\n9 of 10\n", out.String()); diff != "" {
		t.Errorf("it says (-want +got)\n%s", diff)
	}
}
