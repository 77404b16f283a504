// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// maxMessage bounds, in bytes, how much of another controller's condition a message repeats.
const maxMessage = 256

// gates is the stage of the step's readinessGates; none when the step names no gates. A step at or before the achieved one has
// passed its gates.
func (r *rollout) gates() []stage {
	if len(r.step.ReadinessGates) == 0 {
		return nil
	}
	rel := r.contender().Release
	var closed []string
	if achieved(rel) < rel.Spec.TargetStep {
		closed = closedGates(rel, r.step.ReadinessGates)
	}
	return []stage{{
		condition: shipper.StrategyContenderAchievedReadiness,
		waiting: func(state *shipper.ReleaseStrategyState) *shipper.StrategyState {
			return &state.WaitingForReadiness
		},
		achieved: len(closed) == 0,
		message: fmt.Sprintf("release %q lacks conditions that others set in its status: %s",
			rel.Name, strings.Join(closed, "; ")),
		reason: shipper.GatesNotReady,
	}}
}

// closedGates describes each of these conditions that is not True.
func closedGates(rel *shipper.Release, types []string) []string {
	var out []string
	for _, conditionType := range types {
		switch c := shipper.FindCondition(rel.Status.Conditions, conditionType); {
		case c == nil:
			out = append(out, conditionType+" is not there yet")
		case c.Status != corev1.ConditionTrue:
			detail := strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
			if detail = strings.TrimPrefix(detail, ": "); detail != "" {
				detail = ", " + shortened(detail)
			}
			out = append(out, fmt.Sprintf("%s is %s%s", conditionType, c.Status, detail))
		}
	}
	return out
}

// shortened cuts another controller's text to maxMessage bytes.
func shortened(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "…"
}
