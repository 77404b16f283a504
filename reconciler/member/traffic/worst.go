// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// severity orders the reasons why a Service does not have the traffic asked for, the worst first.
var severity = []string{
	shipper.MissingService, shipper.PodsNotReady, shipper.PodsNotInEndpoints, shipper.InProgress, shipper.AddressAwaited,
}

// worst is what came of a target over all Services: that of the worst one, with the least traffic that any has achieved. Services that no
// Pods of the Release are made for do not count. There is at least one plan.
func worst(plans []Outcome) Outcome {
	for i := range plans {
		plans[i].moved = plans[i].plan.Moves()
	}
	counted := slices.DeleteFunc(slices.Clone(plans), func(of Outcome) bool { return of.idle })
	if len(counted) == 0 {
		counted = plans[:1]
	}
	out := slices.MinFunc(counted, func(a, b Outcome) int { return cmp.Compare(rank(a), rank(b)) })
	var foreign []string
	for _, of := range counted {
		out.plan.Achieved = min(out.plan.Achieved, of.plan.Achieved)
	}
	for _, of := range plans {
		if of.foreign != "" {
			foreign = append(foreign, of.foreign)
		}
	}
	out.foreign, out.address = strings.Join(foreign, "; "), worstAddress(plans)
	return out
}

// rank is small for what is worse. A Service without endpoints comes first.
func rank(of Outcome) int {
	found := ready(of)
	switch i := slices.Index(severity, found.Reason); {
	case found.Status == corev1.ConditionTrue:
		return len(severity) + 1
	case of.empty:
		return -1
	case i < 0: // of the preview Service, which is no more of one than of another
		return len(severity)
	default:
		return i
	}
}
