// SPDX-License-Identifier: Apache-2.0

package block

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Change is a change of an Application or of one of its Releases, as blocks need to know it. App creates it.
type Change struct {
	// Kinds are the kinds of change that a block's allow list can exempt. Most changes have none.
	Kinds []shipper.RolloutBlockChange
	// Labels are the Application's, before and after the change, and those of its running Releases: a scope that selects one of
	// these sets matches. Called only if a scope has a selector. Nil: there are none.
	Labels func() []map[string]string
	// Environments run before or after the change: their regions and charts count.
	Environments []*shipper.ReleaseEnvironment
	// Clusters are those of the change, present or future. Called only if a scope names clusters; if it is nil or returns nil,
	// they are unknown and every scope matches.
	Clusters func() []string
	// Regions are those of the clusters of placements among Environments, present or future. Called only if a scope names regions; if
	// it is nil or returns nil, they are unknown, and every scope matches if there is a placement.
	Regions func() []string
	// Matches reports whether a block's matchConditions match the request; called only if it has some. Nil: there is no
	// request, and they do not match.
	Matches func(b *shipper.RolloutBlock) bool
}

// And is c with more kinds.
func (c Change) And(kinds ...shipper.RolloutBlockChange) Change {
	c.Kinds = slices.Concat(c.Kinds, kinds)
	return c
}

// applies reports whether a block of the namespace stops a change.
func applies(b *shipper.RolloutBlock, c Change, now time.Time) bool {
	for _, kind := range c.Kinds {
		if slices.Contains(b.Spec.Allow, kind) {
			return false
		}
	}
	return inScope(b.Spec.Scope, c) && Active(b, now) &&
		(len(b.Spec.MatchConditions) == 0 || (c.Matches != nil && c.Matches(b)))
}

// inScope reports whether every part of a scope matches.
func inScope(s *shipper.RolloutBlockScope, c Change) bool {
	return s == nil || charts(s.Charts, c.Environments) && inRegions(s.Regions, c) &&
		selects(s.Applications, c.Labels) && returnsOneOf(s.Clusters, c.Clusters)
}

// selects reports whether a selector selects one of several sets of labels.
func selects(selector *metav1.LabelSelector, sets func() []map[string]string) bool {
	return selector == nil || sets != nil &&
		slices.ContainsFunc(sets(), func(set map[string]string) bool { return matches(selector, set) })
}

// matches does what metav1.LabelSelectorAsSelector does, without its allocations: blocks are many.
func matches(selector *metav1.LabelSelector, set map[string]string) bool {
	for key, want := range selector.MatchLabels {
		if value, there := set[key]; !there || value != want {
			return false
		}
	}
	return !slices.ContainsFunc(selector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool { return !meets(e, set) })
}

// meets reports whether labels meet a requirement. An invalid operator, which the webhook refuses, matches all labels: a
// malformed block must not let changes pass.
func meets(e metav1.LabelSelectorRequirement, set map[string]string) bool {
	value, there := set[e.Key]
	switch e.Operator {
	case metav1.LabelSelectorOpIn:
		return len(e.Values) == 0 || (there && slices.Contains(e.Values, value))
	case metav1.LabelSelectorOpNotIn:
		return !there || !slices.Contains(e.Values, value)
	case metav1.LabelSelectorOpExists:
		return there
	case metav1.LabelSelectorOpDoesNotExist:
		return !there
	}
	return true
}

func charts(names []string, envs []*shipper.ReleaseEnvironment) bool {
	return len(names) == 0 || slices.ContainsFunc(envs, func(env *shipper.ReleaseEnvironment) bool {
		return slices.Contains(names, env.Chart.Name)
	})
}

func inRegions(names []string, c Change) bool {
	if len(names) == 0 {
		return true
	}
	placed := false
	for _, env := range c.Environments {
		placed = placed || env.ClusterRequirements.Placement != nil
		if slices.ContainsFunc(env.ClusterRequirements.Regions, func(r shipper.RegionRequirement) bool {
			return slices.Contains(names, r.Name) && (r.Replicas == nil || *r.Replicas > 0)
		}) {
			return true
		}
	}
	return placed && returnsOneOf(names, c.Regions)
}

// returnsOneOf reports whether where returns one of names, or does not know. No names match everything.
func returnsOneOf(names []string, where func() []string) bool {
	if len(names) == 0 || where == nil {
		return true
	}
	known := where()
	return known == nil || slices.ContainsFunc(known, func(name string) bool { return slices.Contains(names, name) })
}
