// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/position"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// wait is the stage of the time that a wave waits at its end; none where its afterTasks have no wait.
func (r *rollout) wait() []stage {
	rel := r.contender().Release
	s, at := rel.Spec.Environment.Strategy, position.Of(rel)
	length := s.WaitAt(at.Wave, at.Step)
	if length == "" {
		return nil
	}
	end := WaitEnd(rel, rel.Status.Progress)
	asks := fmt.Sprintf("what step %d asks for", at.Step)
	if len(s.Steps) == 0 {
		asks = "the Release"
	}
	message := fmt.Sprintf("wave %s waits %s after its clusters have %s", position.WaveName(s, at.Wave), length, asks)
	if end != nil {
		message += ", until " + end.UTC().Format(time.RFC3339)
	}
	return []stage{{
		condition: shipper.StrategyContenderAchievedWait,
		waiting:   func(state *shipper.ReleaseStrategyState) *shipper.StrategyState { return &state.WaitingForTime },
		achieved:  checkedBefore(rel) || end != nil && !r.now.Before(end),
		message:   message,
		reason:    shipper.WaitNotOver,
	}}
}

// WaitEnd is when the wait of a Release's position is over, by figures; nil where there is none or no more, while the clusters lack
// something, and where the figures are of another position or of an earlier move.
func WaitEnd(rel *shipper.Release, p *shipper.ReleaseProgress) *metav1.Time {
	at := position.Of(rel)
	length := rel.Spec.Environment.Strategy.WaitAt(at.Wave, at.Step)
	if length == "" || checkedBefore(rel) || !IsCurrent(rel, p) || p.ConvergedTime == nil {
		return nil
	}
	return new(metav1.NewTime(p.ConvergedTime.Add(length.Value())))
}
