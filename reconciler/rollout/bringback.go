// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/progress"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// bringBack is newest before and after it is brought back by an abort, while blocks are as they are; nil when it is that way.
func bringBack(s *scope, newest *shipper.Release, now metav1.Time) (before, after *shipper.Release) {
	after = broughtBack(newest, s.view(now).OfRelease(newest).Blocked())
	if after.Spec.TargetStep != newest.Spec.TargetStep {
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
	achieved := rel.Status.AchievedStep
	switch {
	case strategy.Complete(rel):
		out.Spec.TargetStep = lastStep(rel)
		return out
	case achieved != nil && achieved.Step >= rel.Spec.TargetStep:
		return out
	case held && achieved != nil:
		out.Spec.TargetStep = achieved.Step
		return out
	case held:
		out.Spec.TargetStep = 0
	}
	out.Annotations[shipper.ReleaseReturnedAnnotation] = strconv.Itoa(int(out.Spec.TargetStep))
	return out
}

// lastStep of a Release; where it is when it has no steps.
func lastStep(rel *shipper.Release) int32 {
	if s := rel.Spec.Environment.Strategy; s != nil && len(s.Steps) > 0 {
		return int32(len(s.Steps) - 1)
	}
	return rel.Spec.TargetStep
}
