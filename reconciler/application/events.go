// SPDX-License-Identifier: Apache-2.0

package application

import (
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/release/diary"
)

// conditionChanged is the reason of events that tell of conditions.
const conditionChanged = "ApplicationConditionChanged"

// changes tells what is new in a status.
func changes(was, is shipper.ApplicationStatus) []report.Event {
	return diary.Changes(conditionChanged, shipper.ApplicationBlocked, was.Conditions, is.Conditions)
}
