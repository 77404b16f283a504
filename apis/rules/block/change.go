// SPDX-License-Identifier: Apache-2.0

package block

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Change is what is about to happen to an Application or to one of its Releases, as far as blocks ask. App makes them.
type Change struct {
	// Kinds are what the change may pass as where a block allows that. Most changes are none of them.
	Kinds []shipper.RolloutBlockChange
	// Labels are those of the Application, before and after the change, and those it had when what runs was made: a block
	// whose scope selects one of them is in the way. They are asked for only when a scope has a selector. Nil: there are none.
	Labels func() []map[string]string
	// Environments are what is run, before and after: their regions and charts count.
	Environments []*shipper.ReleaseEnvironment
	// Clusters are where it runs or would be placed. They are asked for only when a scope names clusters; nil, or an
	// answer of nil, means that they are not known, and every scope matches.
	Clusters func() []string
	// Matches reports whether a block's matchConditions, which there are, match the request. Nil: there is no request that
	// they are asked of, and they match none.
	Matches func(b *shipper.RolloutBlock) bool
}

// And is c that may pass as more kinds.
func (c Change) And(kinds ...shipper.RolloutBlockChange) Change {
	c.Kinds = slices.Concat(c.Kinds, kinds)
	return c
}

// applies reports whether a block that bears on the namespace is in the way of a change.
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
	return s == nil || charts(s.Charts, c.Environments) && regions(s.Regions, c.Environments) &&
		selects(s.Applications, c.Labels) && places(s.Clusters, c.Clusters)
}

// selects reports whether a selector selects one of several sets of labels.
func selects(selector *metav1.LabelSelector, sets func() []map[string]string) bool {
	return selector == nil || sets != nil &&
		slices.ContainsFunc(sets(), func(set map[string]string) bool { return matches(selector, set) })
}

// matches is what metav1.LabelSelectorAsSelector makes of a selector, without making it: blocks are many.
func matches(selector *metav1.LabelSelector, set map[string]string) bool {
	for key, want := range selector.MatchLabels {
		if value, there := set[key]; !there || value != want {
			return false
		}
	}
	return !slices.ContainsFunc(selector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool { return !meets(e, set) })
}

// meets reports whether labels meet a requirement. All meet what is none, and what the webhook therefore refuses: nobody
// may get through by what is malformed.
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

func regions(names []string, envs []*shipper.ReleaseEnvironment) bool {
	return len(names) == 0 || slices.ContainsFunc(envs, func(env *shipper.ReleaseEnvironment) bool {
		return slices.ContainsFunc(env.ClusterRequirements.Regions, func(r shipper.RegionRequirement) bool {
			return slices.Contains(names, r.Name) && (r.Replicas == nil || *r.Replicas > 0)
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
