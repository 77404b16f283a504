// SPDX-License-Identifier: Apache-2.0

package block

import (
	"slices"
	"time"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Upcoming is which of the blocks that bear on an object's namespace is the next to come into a change's way, and when:
// the first of those that are not in effect now. It is nil when none is known to.
func Upcoming(bearing []*shipper.RolloutBlock, c Change, now time.Time) (next *shipper.RolloutBlock, at time.Time) {
	for _, b := range sort(slices.Clone(bearing)) {
		t, err := When(b, now)
		if err != nil || t.Active || t.NextStart.IsZero() || (next != nil && !t.NextStart.Before(at)) ||
			!applies(b, c, t.NextStart) {
			continue
		}
		next, at = b, t.NextStart
	}
	return next, at
}
