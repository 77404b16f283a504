// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// MaxFields bounds the fields that a status names.
const MaxFields = 20

// Add adds what is known of an object to what a status says.
func Add(to *shipper.InstalledDrift, c Comparison) {
	if c.Problem != "" {
		to.Message = c.Problem
	}
	if !c.Drifted() {
		return
	}
	to.Objects++
	room := min(MaxFields-len(to.Fields), len(c.Fields))
	to.Fields = append(to.Fields, c.Fields[:room]...)
	to.Omitted += int32(len(c.Fields) - room)
}

// correctedReason is that of events.
const correctedReason = "DriftCorrected"

// CorrectedEvent is the event about an object that was written again because of fields.
func CorrectedEvent(cluster, object string, fields []shipper.DriftedField) report.Event {
	first := fields[0]
	note := fmt.Sprintf("%s in cluster %q was changed, %s", object, cluster, first.Field)
	if len(fields) > 1 {
		note += fmt.Sprintf(" and %d more fields", len(fields)-1)
	}
	if first.Manager != "" {
		note += fmt.Sprintf(" by %q", first.Manager)
	}
	return report.Event{
		Type: corev1.EventTypeNormal, Reason: correctedReason, Action: "Correct in " + cluster,
		Note: note + "; it is as it was released again",
	}
}
