// SPDX-License-Identifier: Apache-2.0

package block

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Change is what is about to happen to an Application or to one of its Releases, as far as blocks ask.
type Change struct {
	// Kinds are what the change may pass as where a block allows that. Most changes are none of them.
	Kinds []shipper.RolloutBlockChange
	// Labels are the object's, before and after the change: a block whose scope selects one of them is in its way.
	Labels []map[string]string
	// Environments are what is run, before and after: their regions and charts count.
	Environments []*shipper.ReleaseEnvironment
	// Clusters are where it runs or would be placed. They are asked for only when a scope names clusters; nil, or an
	// answer of nil, means that they are not known, and every scope matches.
	Clusters func() []string
	// Matches tells whether a block's matchConditions, which there are, match the request. Nil: there is no request that
	// they are asked of, and they match none.
	Matches func(b *shipper.RolloutBlock) bool
}

// And is c that may pass as more kinds.
func (c Change) And(kinds ...shipper.RolloutBlockChange) Change {
	c.Kinds = slices.Concat(c.Kinds, kinds)
	return c
}

// OfRelease is a change of a Release, or of its targets; as what it may pass is for the caller to say.
func OfRelease(rel *shipper.Release, kinds ...shipper.RolloutBlockChange) Change {
	return Change{
		Kinds: kinds, Labels: []map[string]string{rel.Labels},
		Environments: []*shipper.ReleaseEnvironment{&rel.Spec.Environment},
		Clusters:     func() []string { return clusters(rel) },
	}
}

// OfRollout is what the strategy does for the newest Release of an Application, without being asked again: going back to
// a step that was achieved, after a retreat or the abort of a newer Release, is both of these; rolling out an environment
// that completed before is a rollback. earlier are the Application's other Releases.
func OfRollout(newest *shipper.Release, earlier []*shipper.Release) Change {
	var kinds []shipper.RolloutBlockChange
	if achieved := newest.Status.AchievedStep; achieved != nil && newest.Spec.TargetStep <= achieved.Step {
		kinds = append(kinds, shipper.RolloutBlockAbort, shipper.RolloutBlockRetreat)
	}
	if Rollback(&newest.Spec.Environment, newest, earlier) {
		kinds = append(kinds, shipper.RolloutBlockRollback)
	}
	return OfRelease(newest, kinds...)
}

// Rollback tells whether env is that of a complete Release among earlier. newest is left out: what runs is no rollback.
func Rollback(env *shipper.ReleaseEnvironment, newest *shipper.Release, earlier []*shipper.Release) bool {
	return slices.ContainsFunc(earlier, func(rel *shipper.Release) bool {
		return (newest == nil || rel.Name != newest.Name) &&
			shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete) &&
			stamp.SameEnvironment(&rel.Spec.Environment, env)
	})
}

// applies tells whether a block that bears on the namespace is in the way of a change.
func applies(b *shipper.RolloutBlock, c Change, now time.Time) bool {
	for _, kind := range c.Kinds {
		if slices.Contains(b.Spec.Allow, kind) {
			return false
		}
	}
	return Active(b, now) && inScope(b.Spec.Scope, c) &&
		(len(b.Spec.MatchConditions) == 0 || (c.Matches != nil && c.Matches(b)))
}

// inScope tells whether every part of a scope matches.
func inScope(s *shipper.RolloutBlockScope, c Change) bool {
	return s == nil || selects(s.Applications, c.Labels) && charts(s.Charts, c.Environments) &&
		regions(s.Regions, c.Environments) && places(s.Clusters, c.Clusters)
}

// selects tells whether a selector selects one of several sets of labels. One that cannot be read selects all.
func selects(selector *metav1.LabelSelector, sets []map[string]string) bool {
	if selector == nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err != nil || slices.ContainsFunc(sets, func(set map[string]string) bool { return s.Matches(labels.Set(set)) })
}

func charts(names []string, envs []*shipper.ReleaseEnvironment) bool {
	return len(names) == 0 || slices.ContainsFunc(envs, func(env *shipper.ReleaseEnvironment) bool {
		return slices.Contains(names, env.Chart.Name)
	})
}

func regions(names []string, envs []*shipper.ReleaseEnvironment) bool {
	return len(names) == 0 || slices.ContainsFunc(envs, func(env *shipper.ReleaseEnvironment) bool {
		return slices.ContainsFunc(env.ClusterRequirements.Regions, func(r shipper.RegionRequirement) bool {
			return slices.Contains(names, r.Name)
		})
	})
}

func places(names []string, where func() []string) bool {
	if len(names) == 0 || where == nil {
		return true
	}
	known := where()
	return known == nil || slices.ContainsFunc(known, func(name string) bool { return slices.Contains(names, name) })
}

// clusters are those that were chosen for a Release; nil when they were not chosen yet.
func clusters(rel *shipper.Release) []string {
	var out []string
	for _, name := range strings.Split(rel.Annotations[shipper.ReleaseClustersAnnotation], ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}
