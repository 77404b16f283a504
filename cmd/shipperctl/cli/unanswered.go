// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// answersWithin is how long an edit may stand before people are told that the reconciler does not look at it.
const answersWithin = 15 * time.Second

// Unanswered says that the reconciler has not looked at the last edit of an object since longer than it takes; empty where it has, or may
// still do so. observed is the generation in the status.
func Unanswered(o client.Object, observed int64, now time.Time) string {
	if observed >= o.GetGeneration() {
		return ""
	}
	edited := o.GetCreationTimestamp().Time
	for _, by := range o.GetManagedFields() {
		if by.Subresource == "" && by.Time != nil && by.Time.After(edited) {
			edited = by.Time.Time
		}
	}
	if stood := now.Sub(edited); stood > answersWithin && !edited.IsZero() {
		return fmt.Sprintf("it was made %s ago: the reconciler does not answer, `shipperctl doctor` says why", duration.HumanDuration(stood))
	}
	return ""
}
