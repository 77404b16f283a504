// SPDX-License-Identifier: Apache-2.0

package block

import (
	"maps"
	"slices"
	"strconv"
	"sync"

	"shipper.dev/shipper/apis/rules/placement"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// App is an Application as blocks ask about it: the webhook and the reconciler describe what happens to it in the same
// words, so that what one lets through the other carries out.
type App struct {
	Name string
	// Labels the Application has; those it had before as well, when they change. None when they are not known.
	Labels []map[string]string
	// Releases are its own that are not being deleted, oldest first.
	Releases []*shipper.Release
	// Clusters are all there are. It is asked only when a scope names clusters and none were chosen yet. Nil: nobody knows.
	Clusters func() []shipper.Cluster
}

// Newest is the newest Release; nil when there is none.
func (a App) Newest() *shipper.Release {
	if len(a.Releases) == 0 {
		return nil
	}
	return a.Releases[len(a.Releases)-1]
}

// Previous is the Release that comes in the newest one's stead when that is deleted; nil when there is none.
func (a App) Previous() *shipper.Release {
	if len(a.Releases) < 2 {
		return nil
	}
	return a.Releases[len(a.Releases)-2]
}

// Edit is a change of the Application itself: of its template before, which is nil when it is created, to that after,
// which is nil when it is deleted. Taking the template back to that of a Release that completed is a rollback, also when
// that one runs still.
func (a App) Edit(before, after *shipper.ReleaseEnvironment) Change {
	c := a.change(a.serving(len(a.Releases)), before, after)
	if before != nil && after != nil && !stamp.SameEnvironment(before, after) && a.completed(after, nil) {
		c = c.And(shipper.RolloutBlockRollback)
	}
	return c
}

// Step is what is asked of a Release by hand: that it comes to be, and that it goes to a step. What it replaces is
// concerned as well. All of it is a rollback when the environment is that of an earlier Release that completed.
func (a App) Step(rel *shipper.Release) Change {
	c := a.change(a.with(rel))
	if a.completed(&rel.Spec.Environment, rel) {
		c = c.And(shipper.RolloutBlockRollback)
	}
	return c
}

// Rollout is what the strategy does for the newest Release, which there must be, without being asked again. Going back to
// a step that was achieved, or to what an abort brought back, is both an abort and a retreat.
func (a App) Rollout() Change {
	newest := a.Newest()
	c := a.Step(newest)
	if goesBack(newest) {
		c = c.And(shipper.RolloutBlockAbort, shipper.RolloutBlockRetreat)
	}
	return c
}

// Deletion is that of a Release by hand. That of the newest, if another comes in its stead, is an abort.
func (a App) Deletion(rel *shipper.Release) Change {
	c := a.change(a.with(rel))
	if newest := a.Newest(); newest != nil && newest.Name == rel.Name && a.Previous() != nil {
		c = c.And(shipper.RolloutBlockAbort)
	}
	return c
}

// Trimming is the deletion of a Release that Shipper does not need any more. One that never completed, and whose place the
// newest takes, goes with the rollout of that one: a rollback would else leave traffic on what it is to replace.
func (a App) Trimming(rel *shipper.Release) Change {
	c := a.change([]*shipper.Release{rel})
	if newest := a.Newest(); newest != nil && !strategy.Complete(rel) && a.completed(&newest.Spec.Environment, newest) {
		c = c.And(shipper.RolloutBlockRollback)
	}
	return c
}

// with is rel with what serves until it does, if it is the newest or comes next.
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

// completed reports whether env is that of a Release that completed, other than except.
func (a App) completed(env *shipper.ReleaseEnvironment, except *shipper.Release) bool {
	return slices.ContainsFunc(a.Releases, func(rel *shipper.Release) bool {
		return (except == nil || rel.Name != except.Name) && strategy.Complete(rel) &&
			stamp.SameEnvironment(&rel.Spec.Environment, env)
	})
}

// goesBack reports whether a Release is to be no further than it has been, or where an abort found it.
func goesBack(rel *shipper.Release) bool {
	achieved := rel.Status.AchievedStep
	return (achieved != nil && rel.Spec.TargetStep <= achieved.Step) ||
		rel.Annotations[shipper.ReleaseReturnedAnnotation] == strconv.Itoa(int(rel.Spec.TargetStep))
}

// change concerns rels, and templates, of which the last is one to be placed; those that are nil are none.
func (a App) change(rels []*shipper.Release, templates ...*shipper.ReleaseEnvironment) Change {
	c := Change{Labels: sync.OnceValue(func() []map[string]string { return a.labels(rels) })}
	for _, rel := range rels {
		c.Environments = append(c.Environments, &rel.Spec.Environment)
	}
	var place *shipper.ReleaseEnvironment
	for _, place = range templates {
		if place != nil {
			c.Environments = append(c.Environments, place)
		}
	}
	c.Clusters = func() []string { return a.where(rels, place) }
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

// LabelsOf are those the Application had when rel was made of it: who takes a label away first does not get out of a
// scope that way.
func LabelsOf(rel *shipper.Release) map[string]string {
	own := maps.Clone(rel.Labels)
	for _, key := range []string{shipper.AppLabel, shipper.ReleaseLabel, shipper.ReleaseHashLabel} {
		delete(own, key)
	}
	return own
}

// where is in which clusters rels are, or would be, and in which what has the environment next would be, if there is one;
// nil when that is not known of all.
func (a App) where(rels []*shipper.Release, next *shipper.ReleaseEnvironment) []string {
	out, places := []string{}, []*shipper.ReleaseEnvironment{}
	for _, rel := range rels {
		chosen := strategy.Clusters(rel)
		if out = append(out, chosen...); len(chosen) == 0 {
			places = append(places, &rel.Spec.Environment)
		}
	}
	if next != nil {
		places = append(places, next)
	}
	for _, env := range places {
		if a.Clusters == nil {
			return nil
		}
		choice, err := placement.Choose(a.Name, env.ClusterRequirements, a.Clusters())
		if err != nil {
			return nil
		}
		out = append(out, choice...)
	}
	return out
}
