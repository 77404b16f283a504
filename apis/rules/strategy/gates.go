// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// maxMessage bounds what is repeated of the words of a condition that is not ours.
const maxMessage = 256

// gates is the stage of the step's readinessGates; there is none when it names none. A step that was achieved, or one that
// lies behind what was, has passed them.
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

// closedGates says of each condition that is not True what it is.
func closedGates(rel *shipper.Release, types []string) []string {
	var out []string
	for _, conditionType := range types {
		switch c := shipper.FindCondition(rel.Status.Conditions, conditionType); {
		case c == nil:
			out = append(out, conditionType+" is not there yet")
		case c.Status != corev1.ConditionTrue:
			said := strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
			if said = strings.TrimPrefix(said, ": "); said != "" {
				said = ", " + shortened(said)
			}
			out = append(out, fmt.Sprintf("%s is %s%s", conditionType, c.Status, said))
		}
	}
	return out
}

// shortened cuts what others say where it is too long for a message of ours.
func shortened(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "…"
}
