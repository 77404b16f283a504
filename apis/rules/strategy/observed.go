// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Observed is the input of a plan.
type Observed struct {
	// Releases of one Application that have a valid generation and are not being deleted, oldest first.
	Releases []Release
	// Leaving are Releases of the Application that are being deleted and kept until others serve in their place.
	Leaving []Release
	// Blocked names the RolloutBlocks that stop the newest Release. While it is not empty, the plan writes no targets.
	Blocked string
	// Approvals are those of the newest Release's namespace that may bear on it.
	Approvals []shipper.Approval
	// Checks is how far the checks of the newest Release's step are; nil before they begin.
	Checks *check.State
	// Returning is true from the deletion of a newer Release until the application reconciler has handled it. If the newest
	// Release here is complete, the plan uses its last step and ignores its targetStep.
	Returning bool
	// BlockedIn has, by cluster, the message of the RolloutBlocks that hold the cluster alone: the plan writes nothing for it. Only where the
	// newest Release has waves.
	BlockedIn map[string]string
}

// Release is a Release with its targets.
type Release struct {
	// Release is never nil.
	Release *shipper.Release
	// Installation, Capacity and Traffic are the Release's targets; each is nil while it does not exist.
	Installation *shipper.InstallationTarget
	Capacity     *shipper.CapacityTarget
	Traffic      *shipper.TrafficTarget
	// Held names the RolloutBlocks that keep the Release from being deleted; empty when none do.
	Held string
}

// Scheduled reports whether all three targets exist or, for a Release with resources, its InstallationTarget.
func (r Release) Scheduled() bool {
	if placesResources(r.Release) {
		return r.Installation != nil
	}
	return r.Installation != nil && r.Capacity != nil && r.Traffic != nil
}

// Lost reports whether targets are missing of a Release that may have had them: its Pods may run without a target. A Release
// that is known not to have been scheduled has never run; one with fewer clusters than its placement wants may have.
func (r Release) Lost() bool {
	c := shipper.FindCondition(r.Release.Status.Conditions, shipper.ReleaseScheduled)
	never := c != nil && c.Status == corev1.ConditionFalse && c.Reason != shipper.PlacementUnfulfilled &&
		c.Reason != shipper.NoWaveForClusters
	return !r.Scheduled() && len(stamp.Clusters(r.Release)) > 0 && !never
}

// Role is the part a Release has in a rollout.
type Role string

// The roles.
const (
	// Contender is the newest Release: its strategy and targetStep are executed.
	Contender Role = "contender"
	// Incumbent is the newest complete Release before the contender.
	Incumbent Role = "incumbent"
	// Superseded is a Release that was not complete when a newer one came.
	Superseded Role = "superseded"
	// Retired is a complete Release older than the incumbent.
	Retired Role = "retired"
)

// Roles assigns a role to each of the Releases, which are ordered oldest first.
func Roles(rels []*shipper.Release) []Role {
	roles := make([]Role, len(rels))
	complete := Incumbent
	for i := len(rels) - 1; i >= 0; i-- {
		switch {
		case i == len(rels)-1:
			roles[i] = Contender
		case Complete(rels[i]) || assumedComplete(rels[i]):
			roles[i] = complete
			complete = Retired
		default:
			roles[i] = Superseded
		}
	}
	return roles
}

// Complete reports whether a Release is known to have completed.
func Complete(rel *shipper.Release) bool {
	return shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete)
}

// wasComplete reports whether a Release is known to be complete, or to have been before it was moved back.
func wasComplete(rel *shipper.Release) bool {
	c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseComplete)
	return c != nil && (c.Status == corev1.ConditionTrue || c.Reason == shipper.NoLongerComplete)
}

// Previous is the Release, of all oldest first, that a rollback without a name restores: the newest one known to have
// completed, other than the newest Release if that has the template's environment; nil when there is none. After an abort, and
// before the template's Release is created, it may be the newest Release.
func Previous(rels []*shipper.Release, template *shipper.ReleaseEnvironment) *shipper.Release {
	if n := len(rels); n > 0 && stamp.SameTemplate(&rels[n-1].Spec.Environment, template) {
		rels = rels[:n-1]
	}
	return LastComplete(rels)
}

// Placing are those of some Releases, oldest first, whose objects clusters may have: the newest known to have completed, and all after it.
func Placing(rels []*shipper.Release) []*shipper.Release {
	for i, rel := range slices.Backward(rels) {
		if wasComplete(rel) {
			return rels[i:]
		}
	}
	return rels
}

// LastComplete is the newest of some Releases, oldest first, that is known to have completed; nil when none is.
func LastComplete(rels []*shipper.Release) *shipper.Release {
	for _, rel := range slices.Backward(rels) {
		if Complete(rel) {
			return rel
		}
	}
	return nil
}

// statusless reports whether a Release has no status. If clusters were chosen for it, it was restored without its status.
func statusless(rel *shipper.Release) bool {
	return rel.Status.ObservedGeneration == 0 && len(rel.Status.Conditions) == 0
}

// assumedComplete reports whether to treat a Release that is not the newest as complete: it was restored without its status,
// and its targetStep is the last step.
func assumedComplete(rel *shipper.Release) bool {
	return statusless(rel) && len(stamp.Clusters(rel)) > 0 && last(rel)
}

// roles are the Roles of the observed Releases.
func (o Observed) roles() []Role {
	rels := make([]*shipper.Release, len(o.Releases))
	for i := range o.Releases {
		rels[i] = o.Releases[i].Release
	}
	return Roles(rels)
}

// incumbent is the index of the incumbent; -1 when there is none.
func (o Observed) incumbent() int { return slices.Index(o.roles(), Incumbent) }

// contender is the newest Release; there must be one.
func (o Observed) contender() Release { return o.Releases[len(o.Releases)-1] }

// steps of a Release's strategy; none when it has no strategy.
func steps(rel *shipper.Release) []shipper.RolloutStrategyStep {
	if rel.Spec.Environment.Strategy == nil {
		return nil
	}
	return rel.Spec.Environment.Strategy.Steps
}

// stepAt is the step of that index; nil when there is none.
func stepAt(rel *shipper.Release, i int32) *shipper.RolloutStrategyStep {
	if position.HasWaves(rel) { // the last step of a wave has its afterTasks
		return rel.Spec.Environment.Strategy.StepAt(position.Of(rel).Wave, i)
	}
	if all := steps(rel); i >= 0 && int(i) < len(all) {
		return &all[i]
	}
	return nil
}
