// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// argoSurge is Argo's default of maxSurge and maxUnavailable.
const argoSurge = "25%"

// compareSurge reports how many Pods a canary without trafficRouting has at most, if Argo has fewer. Shipper starts the contender's Pods
// of a step before it stops the incumbent's, so that there are never fewer than Argo allows.
func compareSurge(d document, r *rollout, steps []shipper.RolloutStrategyStep, report *report) error {
	const field = "spec.strategy.canary"
	from := r.Spec.Strategy.Canary
	given := from.MaxSurge
	if given == nil {
		given = new(intstr.FromString(argoSurge))
	}
	number := intstr.Parse(given.String())
	surge, err := intstr.GetScaledValueFromIntOrPercent(&number, int(r.replicas()), true)
	if err != nil || surge < 0 {
		return d.failed(field+".maxSurge", "is %q, and must be a number of Pods or a percentage such as 25%%", given.String())
	}
	most, at := int32(0), ""
	incumbent := int32(100)
	for _, step := range steps {
		// Argo has one Pod more where the Pods of the two shares are rounded up to more than replicas.
		pods := podsFor(step.Capacity.Contender, r.replicas()) + podsFor(incumbent, r.replicas())
		uneven := podsFor(step.Capacity.Contender, r.replicas()) + podsFor(step.Capacity.Incumbent, r.replicas()) - r.replicas()
		if pods > most && pods > r.replicas()+int32(surge)+max(uneven, 0) {
			most, at = pods, step.Name
		}
		incumbent = step.Capacity.Incumbent
	}
	if most == 0 {
		return nil
	}
	how := fmt.Sprintf("is %s", given.String())
	if from.MaxSurge == nil {
		how = "has no maxSurge, which is then " + argoSurge
	}
	where := field
	if from.MaxSurge != nil {
		where += ".maxSurge"
	}
	report.add(where, "%s: Argo runs at most %d Pods, and Shipper up to %d on the way to the step %q: add steps with less capacity before it",
		how, r.replicas()+int32(surge), most, at)
	return nil
}

// podsFor is the number of Pods that a percentage makes.
func podsFor(percent, replicas int32) int32 {
	return int32((int64(percent)*int64(replicas) + 99) / 100)
}
