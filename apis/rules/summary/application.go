// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// OfApplication summarises the progress of the newest of an Application's Releases, which are ordered oldest first; nil when
// there are none.
func OfApplication(rels []*shipper.Release) *shipper.ApplicationSummary {
	if len(rels) == 0 {
		return nil
	}
	newest := rels[len(rels)-1]
	return &shipper.ApplicationSummary{Step: step(newest), Health: health(newest)}
}

// step is the last step that a Release achieved; empty when there is none.
func step(rel *shipper.Release) string {
	achieved, strategy := rel.Status.AchievedStep, rel.Spec.Environment.Strategy
	switch {
	case achieved == nil:
		return ""
	case strategy == nil || len(strategy.Steps) == 0:
		return achieved.Name
	}
	return strings.TrimSpace(fmt.Sprintf("%d/%d %s", achieved.Step, len(strategy.Steps)-1, achieved.Name))
}

// health is the health of a Release's objects; empty while it is unknown.
func health(rel *shipper.Release) shipper.ApplicationHealth {
	c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseHealthy)
	switch {
	case c == nil:
		return ""
	case c.Status == corev1.ConditionTrue:
		return shipper.ApplicationHealthy
	case c.Reason == shipper.ObjectsInProgress:
		return shipper.ApplicationProgressing
	case c.Status == corev1.ConditionFalse:
		return shipper.ApplicationDegraded
	}
	return shipper.ApplicationHealthUnknown
}
