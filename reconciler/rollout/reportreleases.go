// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/events"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/rollout/blocks"
)

// reportReleases persists the status of every Release and then records the events of the pass. A Release whose status cannot be
// written does not keep the others from theirs. When one is held back, wait is how long.
func (r *pass) reportReleases(ctx context.Context, s *scope, p releasesPlan, d releasesDone) (wait time.Duration, errs []error) {
	persist := func(rel *shipper.Release, is shipper.ReleaseStatus, done []report.Event) {
		held, changes, err := r.persistRelease(ctx, rel, is, d.retried() || statusTurned(rel.Status, is))
		wait, errs = report.Sooner(wait, held), append(errs, err)
		report.Emit(r.recorder, rel, ofPass(rel, done, changes))
	}
	for i := range s.history.Live {
		rel := s.history.Live[i].Release
		persist(rel, releaseStatus(s, p, d, i, r.now), written(d, rel, p.verdict))
	}
	for i, leaving := range p.rollout.Leaving {
		if rel := s.history.Leaving[i].Release; !slices.Contains(p.remove, rel) {
			persist(rel, leaving.Status, nil)
		}
	}
	for _, rel := range s.history.Broken {
		persist(rel, brokenStatus(rel, r.now), nil)
	}
	return wait, errs
}

// written are the events of what was written for a Release, and of the blocks that it overrides. The newest Release decides the specs of
// all targets, also those of other Releases.
func written(d releasesDone, rel *shipper.Release, v block.Verdict) []report.Event {
	out := d.events[rel.Name]
	if names := blocks.Overridden(v); names != "" && (len(out) > 0 || d.asked && d.newest == rel.Name) {
		out = append(out, events.Override(names))
	}
	return out
}

// ofPass returns the events about what was done in a pass and what changed by it. A Release with resources has one step, and one event
// about each pass in which something begins or ends: hundreds of placements may begin at once.
func ofPass(rel *shipper.Release, done, changes []report.Event) []report.Event {
	all := append(slices.Clip(done), changes...)
	if rel.Spec.Environment.Resources != nil {
		return report.AsOne(all)
	}
	return all
}

// persistRelease writes a status that differs from what it was, unless the Release was changed since it was read, and returns the events
// about the changes. Progress is throttled: held is how long the write still waits.
func (r *pass) persistRelease(
	ctx context.Context, rel *shipper.Release, is shipper.ReleaseStatus, turned bool,
) (held time.Duration, changes []report.Event, err error) {
	next := rel.DeepCopy()
	next.Status = is
	if held = r.releases.DelayFor(turned, rel, next, r.now.Time); held > 0 || equality.Semantic.DeepEqual(rel.Status, is) {
		return held, nil, nil
	}
	err = r.client.Status().Patch(ctx, next, onlyIfUnchanged(rel))
	if r.wrote(next); err != nil {
		return 0, nil, fmt.Errorf("writing the status of release %s/%s: %w", rel.Namespace, rel.Name, err)
	}
	return 0, releaseChanges(rel, is), nil
}

// statusTurned reports whether a changed status must be written at once. A change of status.strategy.state is, because the original's
// clients act on it; progress, such as the number of ready Pods, may lag.
func statusTurned(was, is shipper.ReleaseStatus) bool {
	if onlyPlacement(was, is) {
		return false
	}
	return was.ObservedGeneration != is.ObservedGeneration || !equality.Semantic.DeepEqual(was.AchievedStep, is.AchievedStep) ||
		!awaited(was) || !awaited(is) || urgentStates(was) != urgentStates(is) ||
		slices.ContainsFunc(is.Conditions, func(c shipper.Condition) bool {
			before := shipper.FindCondition(was.Conditions, c.Type)
			return turned(before, c) && (len(is.Waves) == 0 || !takesTurns(before, c))
		})
}

// takesTurns reports whether a condition says that other clusters of a wave move: those that begin are not operational for a moment.
func takesTurns(was *shipper.Condition, is shipper.Condition) bool {
	moves := func(c *shipper.Condition) bool {
		return c.Reason == shipper.AdvancingMoving || c.Reason == shipper.ClustersNotOperational
	}
	return is.Type == shipper.ReleaseAdvancing && was != nil && moves(was) && moves(&is)
}

// urgentStates are the states whose changes are written at once. In waves, one cluster after another is installed and gets Pods and
// traffic, so that these states come and go with each of them. The original had no waves, and its clients do not act on them.
func urgentStates(s shipper.ReleaseStatus) shipper.ReleaseStrategyState {
	out := states(s)
	if len(s.Waves) > 0 {
		out.WaitingForInstallation, out.WaitingForCapacity, out.WaitingForTraffic = "", "", ""
	}
	return out
}

// turned reports whether a condition says something that is waited for while a step is under way: anything but how far that is, and how
// objects are, unless it is bad.
func turned(was *shipper.Condition, is shipper.Condition) bool {
	if is.Type == shipper.ReleaseHealthy {
		return is.Reason == shipper.ObjectsNotHealthy && (was == nil || was.Reason != is.Reason || was.Status != is.Status)
	}
	return was == nil || was.Status != is.Status || was.Reason != is.Reason ||
		was.Message != is.Message && is.Type != shipper.ReleaseStrategyExecuted && is.Type != shipper.ReleaseAdvancing &&
			is.Reason != shipper.PlacementUnfulfilled
}

// awaited reports whether a status says that its step is under way.
func awaited(s shipper.ReleaseStatus) bool {
	c := shipper.FindCondition(s.Conditions, shipper.ReleaseStrategyExecuted)
	return c != nil && c.Status == corev1.ConditionFalse && c.Reason == shipper.StrategyInProgress
}
