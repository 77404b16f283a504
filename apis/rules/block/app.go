// SPDX-License-Identifier: Apache-2.0

package block

import (
	"maps"
	"slices"
	"sync"
	"time"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// App describes an Application to blocks. The webhook and the reconciler build the same Change from it, so that the reconciler
// carries out what the webhook admits.
type App struct {
	Name string
	// Labels the Application has, and those it had before a change; none when they are unknown.
	Labels []map[string]string
	// Releases are its own Releases that are not being deleted, oldest first.
	Releases []*shipper.Release
	// Clusters returns all clusters. It is called only if a scope names clusters and none were chosen yet, or regions and there is a
	// placement. Nil: unknown.
	Clusters func() []shipper.Cluster
	// UnhealthyAfter and Now are those of placement.Input.
	UnhealthyAfter time.Duration
	Now            time.Time
}

// Newest is the newest Release; nil when there is none.
func (a App) Newest() *shipper.Release {
	if len(a.Releases) == 0 {
		return nil
	}
	return a.Releases[len(a.Releases)-1]
}

// Previous is the Release that replaces the newest one when that is deleted; nil when there is none.
func (a App) Previous() *shipper.Release {
	if len(a.Releases) < 2 {
		return nil
	}
	return a.Releases[len(a.Releases)-2]
}

// Edit is a change of the Application's template from before, nil on creation, to after, nil on deletion. A change to the
// template of a Release that completed is a rollback, even if that Release still runs.
func (a App) Edit(before, after *shipper.ReleaseEnvironment) Change {
	c := a.change(a.serving(len(a.Releases)), before, after)
	if before != nil && after != nil && !stamp.SameEnvironment(before, after) && a.completed(after, nil) {
		c = c.And(shipper.RolloutBlockRollback)
	}
	return c
}

// Step is a user's creation of a Release, or change of its step. It affects the Releases that rel replaces, too. It is a
// rollback when the environment is that of an earlier Release that completed.
func (a App) Step(rel *shipper.Release) Change {
	c := a.change(a.with(rel))
	if a.completed(&rel.Spec.Environment, rel) {
		c = c.And(shipper.RolloutBlockRollback)
	}
	return c
}

// Rollout is the strategy's own progress for the newest Release, which must exist. Going back to an achieved step, or to the
// step that an abort restored, is both an abort and a retreat.
func (a App) Rollout() Change {
	newest := a.Newest()
	c := a.Step(newest)
	if goesBack(newest) {
		c = c.And(shipper.RolloutBlockAbort, shipper.RolloutBlockRetreat)
	}
	return c
}

// Joining is the placement of a Release on more clusters: it concerns these alone.
func (a App) Joining(rel *shipper.Release, added []string) Change {
	c := a.change([]*shipper.Release{rel})
	c.Clusters = func() []string { return added }
	c.Regions = func() []string { return a.regionsOf(added) }
	return c
}

// Deletion is a user's deletion of a Release. If it is the newest and another one replaces it, that is an abort.
func (a App) Deletion(rel *shipper.Release) Change {
	c := a.change(a.with(rel))
	if newest := a.Newest(); newest != nil && newest.Name == rel.Name && a.Previous() != nil {
		c = c.And(shipper.RolloutBlockAbort)
	}
	return c
}

// Trimming is Shipper's deletion of a Release that it no longer needs. Deleting a Release that never completed is part of a
// rollback to the newest one: otherwise traffic would stay on the Release that the rollback replaces.
func (a App) Trimming(rel *shipper.Release) Change {
	c := a.change([]*shipper.Release{rel})
	if newest := a.Newest(); newest != nil && !strategy.Complete(rel) && a.completed(&newest.Spec.Environment, newest) {
		c = c.And(shipper.RolloutBlockRollback)
	}
	return c
}

// with is rel and the Releases that serve until it does, if it is the newest or comes next.
func (a App) with(rel *shipper.Release) []*shipper.Release {
	i := slices.IndexFunc(a.Releases, func(r *shipper.Release) bool { return r.Name == rel.Name })
	switch {
	case i < 0:
		i = len(a.Releases)
	case i < len(a.Releases)-1:
		return []*shipper.Release{rel}
	}
	return append([]*shipper.Release{rel}, a.serving(i)...)
}

// serving are the Releases before the i-th, back to the last that completed.
func (a App) serving(i int) []*shipper.Release {
	for first := i - 1; first >= 0; first-- {
		if strategy.Complete(a.Releases[first]) {
			return a.Releases[first:i]
		}
	}
	return a.Releases[:i]
}

// completed reports whether env is the environment of a Release, other than except, that completed.
func (a App) completed(env *shipper.ReleaseEnvironment, except *shipper.Release) bool {
	return slices.ContainsFunc(a.Releases, func(rel *shipper.Release) bool {
		return (except == nil || rel.Name != except.Name) && strategy.Complete(rel) &&
			stamp.SameEnvironment(&rel.Spec.Environment, env)
	})
}

// goesBack reports whether a Release's position is not after the one that it has achieved, or is the one that an abort restored.
func goesBack(rel *shipper.Release) bool {
	at := position.Of(rel)
	return rel.Status.AchievedStep != nil && !position.Achieved(rel).Before(at) ||
		rel.Annotations[shipper.ReleaseReturnedAnnotation] == at.String()
}

// change is the Change that affects rels and templates, nil ones excluded; the last template is to be placed on clusters.
func (a App) change(rels []*shipper.Release, templates ...*shipper.ReleaseEnvironment) Change {
	c := Change{Labels: sync.OnceValue(func() []map[string]string { return a.labels(rels) })}
	for _, rel := range rels {
		c.Environments = append(c.Environments, &rel.Spec.Environment)
	}
	var newest *shipper.ReleaseEnvironment
	for _, newest = range templates {
		if newest != nil {
			c.Environments = append(c.Environments, newest)
		}
	}
	c.Clusters = func() []string { return a.where(rels, newest) }
	c.Regions = sync.OnceValue(func() []string { return a.regions(rels, templates) })
	return c
}

// labels are those of a and those of rels.
func (a App) labels(rels []*shipper.Release) []map[string]string {
	out := slices.Clone(a.Labels)
	for _, rel := range rels {
		out = append(out, LabelsOf(rel))
	}
	return out
}

// LabelsOf are the labels that the Application had when rel was created. A user who first removes a label does not leave the
// scope of a block that way.
func LabelsOf(rel *shipper.Release) map[string]string {
	own := maps.Clone(rel.Labels)
	for _, key := range []string{shipper.AppLabel, shipper.ReleaseLabel, shipper.ReleaseHashLabel} {
		delete(own, key)
	}
	return own
}
