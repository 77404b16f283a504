// SPDX-License-Identifier: Apache-2.0

package application

import (
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/release/events"
)

// conditionChanged is the reason of events that tell of conditions.
const conditionChanged = "ApplicationConditionChanged"

// changes tells what is new in a status. Of blocks it tells for its Releases, too: there is one event for an Application that rests.
func changes(was, is shipper.ApplicationStatus) []report.Event {
	concerned := events.Unaffected
	if shipper.ConditionTrue(is.Conditions, shipper.ApplicationRollingOut) {
		concerned = events.Held
	}
	return events.Changes(conditionChanged, shipper.ApplicationBlocked, concerned, was.Conditions, is.Conditions)
}
