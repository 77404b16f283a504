// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Observed is what a plan is made of.
type Observed struct {
	// Releases of one Application that have a valid generation and are not being deleted, oldest first.
	Releases []Release
	// Leaving are Releases of the Application that are being deleted and kept until others serve in their place.
	Leaving []Release
	// Blocked says which RolloutBlocks stop the newest Release; while it is not empty nothing is asked of targets.
	Blocked string
	// Returning is true while a Release newer than the newest here was deleted and nobody has dealt with that yet. The
	// newest was moved while that had no effect, if it was moved; when it is complete it serves as its last step says.
	Returning bool
}

// Release is a Release with its targets.
type Release struct {
	// Release is never nil.
	Release *shipper.Release
	// Installation, Capacity and Traffic are the Release's targets; each is nil while it does not exist.
	Installation *shipper.InstallationTarget
	Capacity     *shipper.CapacityTarget
	Traffic      *shipper.TrafficTarget
	// Held says which RolloutBlocks keep the Release from being deleted; empty when none do.
	Held string
}

// Scheduled reports whether all three targets are there.
func (r Release) Scheduled() bool {
	return r.Installation != nil && r.Capacity != nil && r.Traffic != nil
}

// Lost reports whether targets are missing of a Release that may have had them: then it may run somewhere, and nobody looks
// after it. One that is known not to have been scheduled has never run.
func (r Release) Lost() bool {
	c := shipper.FindCondition(r.Release.Status.Conditions, shipper.ReleaseScheduled)
	return !r.Scheduled() && len(Clusters(r.Release)) > 0 && (c == nil || c.Status != corev1.ConditionFalse)
}

// Clusters are those chosen for a Release, sorted; none when they were not chosen yet.
func Clusters(rel *shipper.Release) []string {
	var out []string
	for _, name := range strings.Split(rel.Annotations[shipper.ReleaseClustersAnnotation], ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
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

// Roles gives each of the Releases, which are ordered oldest first, its role.
func Roles(rels []*shipper.Release) []Role {
	roles := make([]Role, len(rels))
	complete := Incumbent
	for i := len(rels) - 1; i >= 0; i-- {
		switch {
		case i == len(rels)-1:
			roles[i] = Contender
		case Complete(rels[i]) || takenForComplete(rels[i]):
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

// Previous is the Release that is gone back to when nothing else is said, of all, oldest first: the newest that is known to have
// completed before what the template asks for; nil when none is. That is the newest Release, unless it is yet to be made, as
// after an abort or while the reconciler is away: then what was on its way is not in the list, and the newest may be gone back to.
func Previous(rels []*shipper.Release, template *shipper.ReleaseEnvironment) *shipper.Release {
	if n := len(rels); n > 0 && stamp.SameEnvironment(&rels[n-1].Spec.Environment, template) {
		rels = rels[:n-1]
	}
	return LastComplete(rels)
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

// statusless reports whether nothing is known of a Release. When clusters were chosen for it, it has been worked on: it was
// restored without its status.
func statusless(rel *shipper.Release) bool {
	return rel.Status.ObservedGeneration == 0 && len(rel.Status.Conditions) == 0
}

// takenForComplete reports whether a Release that is not the newest has to be taken for complete, because it was restored
// without its status and is wanted at its last step.
func takenForComplete(rel *shipper.Release) bool {
	return statusless(rel) && len(Clusters(rel)) > 0 && last(rel)
}

// roles are Roles of what was observed.
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

// achieved is the index of the step achieved last; -1 before the first.
func achieved(rel *shipper.Release) int32 {
	if rel.Status.AchievedStep == nil {
		return -1
	}
	return rel.Status.AchievedStep.Step
}

// steps of a Release's strategy; none when it has no strategy.
func steps(rel *shipper.Release) []shipper.RolloutStrategyStep {
	if rel.Spec.Environment.Strategy == nil {
		return nil
	}
	return rel.Spec.Environment.Strategy.Steps
}

// stepAt is the step of that index; nil when there is none.
func stepAt(rel *shipper.Release, i int32) *shipper.RolloutStrategyStep {
	if all := steps(rel); i >= 0 && int(i) < len(all) {
		return &all[i]
	}
	return nil
}
