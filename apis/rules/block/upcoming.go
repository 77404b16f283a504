// SPDX-License-Identifier: Apache-2.0

package block

import (
	"slices"
	"time"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Upcoming is the next block to stop a change, and when: the first of the enforced blocks that are not in effect now and not
// overridden. It is nil when none is known.
func Upcoming(
	bearing []*shipper.RolloutBlock, overrides []Override, c Change, now time.Time,
) (next *shipper.RolloutBlock, at time.Time) {
	for _, b := range sort(slices.Clone(bearing)) {
		t, err := When(b, now)
		if err != nil || t.Active || t.NextStart.IsZero() || (next != nil && !t.NextStart.Before(at)) ||
			len(Judge([]*shipper.RolloutBlock{b}, overrides, c, t.NextStart).Effective) == 0 {
			continue
		}
		next, at = b, t.NextStart
	}
	return next, at
}
