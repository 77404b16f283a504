// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strings"
	"time"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// blueGreenSteps are those of a blue/green strategy: preview, switched, full on.
func blueGreenSteps(d document, r *rollout, templates *index, report *report) ([]shipper.RolloutStrategyStep, error) {
	const field = "spec.strategy.blueGreen."
	from := r.Spec.Strategy.BlueGreen
	for _, number := range []struct {
		name  string
		value *int32
	}{
		{"autoPromotionSeconds", &from.AutoPromotionSeconds}, {"scaleDownDelaySeconds", from.ScaleDownDelaySeconds},
		{"previewReplicaCount", from.PreviewReplicaCount},
	} {
		if number.value != nil && *number.value < 0 {
			return nil, d.failed(field+number.name, "is less than 0")
		}
	}
	contender := int32(100)
	if from.PreviewReplicaCount != nil {
		contender = percentOf(*from.PreviewReplicaCount, r.replicas())
	}
	preview := at("preview", pair(contender, 100), pair(0, 100), "")
	switch {
	case r.Spec.Strategy.Type == previewByPerson:
		preview.Gate = &shipper.StepGate{}
		r.comparePreview(report)
	case from.AutoPromotionEnabled != nil && !*from.AutoPromotionEnabled:
		preview.Gate = &shipper.StepGate{}
	default:
		preview.After = bounded(time.Duration(from.AutoPromotionSeconds)*time.Second, field+"autoPromotionSeconds", report)
	}
	switched := at("switched", pair(100, 100), pair(100, 0), r.scaleDownDelay(from.ScaleDownDelaySeconds, field, report))
	if err := analysed(&preview, d, from.PrePromotionAnalysis, field+"prePromotionAnalysis", templates, report); err != nil {
		return nil, err
	}
	if err := analysed(&switched, d, from.PostPromotionAnalysis, field+"postPromotionAnalysis", templates, report); err != nil {
		return nil, err
	}
	if r.Spec.Strategy.Type != previewByPerson { // v0.1.0 has no abort
		compareAbort(from.AbortScaleDownDelaySeconds, field, report)
	}
	return []shipper.RolloutStrategyStep{preview, switched, fullOn()}, nil
}

// previewByPerson is the strategy's type in Argo Rollouts v0.1.0: a person promotes each preview, and the old Pods are removed at once.
const previewByPerson = "BlueGreenUpdate"

// comparePreview reports what the type of a strategy does not say in its gate.
func (r *rollout) comparePreview(report *report) {
	const field = "spec.strategy.type"
	from := r.Spec.Strategy.BlueGreen
	if from.PreviewService == "" {
		report.add(field, "Argo Rollouts v0.1.0 switches at once without a previewService; here the step \"preview\" waits for a person: "+
			"replace its gate by after: 0s to switch at once")
	}
	if from.AutoPromotionSeconds > 0 || from.AutoPromotionEnabled != nil && *from.AutoPromotionEnabled {
		report.add(field, "%s stands for a person who promotes, and blueGreen promotes by itself: the step \"preview\" waits for a "+
			"person; replace its gate by after: %s if it is to go on by itself", previewByPerson,
			format(time.Duration(from.AutoPromotionSeconds)*time.Second))
	}
}

// scaleDownDelay is how long the Pods of the version before stay after the switch. Argo's default is 30 seconds since v0.2.0.
func (r *rollout) scaleDownDelay(seconds *int32, field string, report *report) shipper.Duration {
	delay := int32(argoDelaySeconds)
	if r.Spec.Strategy.Type == previewByPerson {
		delay = 0
	}
	if seconds != nil {
		delay = *seconds
	}
	return bounded(time.Duration(delay)*time.Second, field+"scaleDownDelaySeconds", report)
}

// compareAbort reports how long Argo keeps the Pods of a rollout that was aborted, by the field of the strategy.
func compareAbort(seconds *int32, field string, report *report) {
	const here = "Shipper removes them when an abort has brought the incumbent back, and after `rollout retreat` keeps those of the step"
	switch {
	case seconds == nil:
		report.add(strings.TrimSuffix(field, "."), "has no abortScaleDownDelaySeconds, which is then 30: Argo keeps the Pods of an aborted "+
			"version 30s longer; %s", here)
	case *seconds == 0:
		report.add(field+"abortScaleDownDelaySeconds", "0 keeps the Pods of an aborted version until the next one; %s", here)
	default:
		report.add(field+"abortScaleDownDelaySeconds", "Argo keeps the Pods of an aborted version %s longer; %s",
			format(time.Duration(*seconds)*time.Second), here)
	}
}
