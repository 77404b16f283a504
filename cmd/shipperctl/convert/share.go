// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"

	"shipper.dev/shipper/apis/rules/preview"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// shares calls say for each step whose weight whole Pods do not give, with what they give. A traffic provider divides
// requests by any weight.
func shares(steps []shipper.RolloutStrategyStep, pods int32, say func(share preview.Share, text string)) {
	for _, share := range preview.Shares(&shipper.RolloutStrategy{Steps: steps}, []int32{pods}) {
		remedy := "raise capacity.contender of the step"
		switch {
		case share.Above():
			remedy = preview.Remedy(steps[share.Step], "capacity.incumbent of the step")
		case !share.Below():
			continue
		}
		say(share, fmt.Sprintf("%d: requests are shared by whole Pods, so that the contender gets %s of the requests with %s, and not %s: %s",
			share.Weight, share.Got(), replicas(pods), share.Wanted(), remedy))
	}
}

// shares reports the weights of a canary, each once. Without a traffic provider Argo counts Pods as well.
func (w *canaryWalk) shares(from []canaryStep, report *report) {
	if !w.routed {
		return
	}
	said := map[int]bool{}
	shares(w.steps, w.replicas, func(share preview.Share, text string) {
		if at := weightAt(from, w.ends[share.Step]); !said[at] {
			said[at] = true
			report.add(fmt.Sprintf("spec.strategy.canary.steps[%d].setWeight", at), "%s", text)
		}
	})
}

// shares reports the weights of a Canary of Flagger.
func (c *canaryConversion) shares(steps []shipper.RolloutStrategyStep) {
	field := c.analysisField() + ".stepWeight"
	if c.analysis().StepWeight <= 0 {
		field += "s"
	}
	shares(steps, c.pods, func(_ preview.Share, text string) { c.report.add(field, "%s", text) })
}

// weightAt is the index of the step of Argo's that sets the weight of a step that ended at end.
func weightAt(from []canaryStep, end int) int {
	for i := min(end, len(from)-1); i >= 0; i-- {
		if from[i].SetWeight != nil {
			return i
		}
	}
	return 0
}

// replicas is a number of Pods for users.
func replicas(n int32) string {
	if n == 1 {
		return "1 replica"
	}
	return fmt.Sprintf("%d replicas", n)
}
