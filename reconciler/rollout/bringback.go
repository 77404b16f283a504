// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/progress"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// bringBack is newest before and after it is brought back by an abort, while blocks are as they are; nil when it is that way.
func bringBack(s *scope, newest *shipper.Release, now metav1.Time) (before, after *shipper.Release) {
	after = broughtBack(newest, s.view(now).OfRelease(newest).Blocked())
	if position.Of(after) != position.Of(newest) {
		after.Annotations[shipper.ReleaseMovedAnnotation] = stamp.Move(newest, after, account, progress.NewerAborted, now)
	}
	if equality.Semantic.DeepEqual(newest, after) {
		return nil, nil
	}
	return newest, after
}

// broughtBack is the Release that an abort restores. If it had completed, it is at its last step; a targetStep written since had no
// effect. Otherwise it keeps its step, or the step that it had achieved while blocks are in effect: those that allow an abort allow no
// advance. An annotation says that the abort set the step.
func broughtBack(rel *shipper.Release, held bool) *shipper.Release {
	out := rel.DeepCopy()
	known, achieved := rel.Status.AchievedStep != nil, position.Achieved(rel)
	switch {
	case strategy.Complete(rel):
		end(rel).Set(out)
		return out
	case known && !achieved.Before(position.Of(rel)):
		return out
	case held && known:
		achieved.Set(out)
		return out
	case held:
		position.Position{}.Set(out)
	}
	out.Annotations[shipper.ReleaseReturnedAnnotation] = position.Of(out).String()
	return out
}

// end is the last position of a Release; where it is when it has neither steps nor waves.
func end(rel *shipper.Release) position.Position {
	if s := rel.Spec.Environment.Strategy; s != nil && len(s.Steps)+len(s.Waves) > 0 {
		return position.Last(s)
	}
	return position.Of(rel)
}
