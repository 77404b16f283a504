// SPDX-License-Identifier: Apache-2.0

package block

import (
	"slices"

	"shipper.dev/shipper/apis/rules/placement"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Select chooses clusters for env as for the next Release of a. The error, a *placement.Error, is only for regions.
func (a App) Select(env *shipper.ReleaseEnvironment) (placement.Decision, error) {
	in := placement.Input{App: a.Name, Requirements: env.ClusterRequirements, UnhealthyAfter: a.UnhealthyAfter, Now: a.Now}
	if a.Clusters != nil {
		in.Clusters = a.Clusters()
	}
	in.Current, in.Sticky = placement.Stay(a.placed(), env)
	return placement.Select(in)
}

// placed is the newest Release that has clusters; nil when there is none.
func (a App) placed() *shipper.Release {
	for _, rel := range slices.Backward(a.Releases) {
		if len(stamp.Clusters(rel)) > 0 {
			return rel
		}
	}
	return nil
}

// choose are the clusters that env would be placed on; nil when they are unknown. They are, too, when none fits as clusters are
// now: any that changes or joins may fit.
func (a App) choose(env *shipper.ReleaseEnvironment) []string {
	if a.Clusters == nil {
		return nil
	}
	d, err := a.Select(env)
	p := env.ClusterRequirements.Placement
	switch {
	case err != nil:
		return nil
	case len(d.Chosen) == 0 && p != nil && (p.Count == nil || *p.Count > 0):
		return nil
	case d.Chosen == nil:
		return []string{}
	}
	return d.Chosen
}

// where are the clusters that rels run in or would be placed on, and that templates would be placed on, if not nil; nil if one of them is
// unknown.
func (a App) where(rels []*shipper.Release, templates ...*shipper.ReleaseEnvironment) []string {
	out, unplaced := []string{}, []*shipper.ReleaseEnvironment{}
	for _, rel := range rels {
		chosen := stamp.Clusters(rel)
		if out = append(out, chosen...); len(chosen) == 0 {
			unplaced = append(unplaced, &rel.Spec.Environment)
		}
	}
	for _, env := range append(unplaced, templates...) {
		if env == nil {
			continue
		}
		chosen := a.choose(env)
		if chosen == nil {
			return nil
		}
		out = append(out, chosen...)
	}
	return out
}

// regions are those of the clusters of each Release and template with a placement; nil if one of them is unknown.
func (a App) regions(rels []*shipper.Release, templates []*shipper.ReleaseEnvironment) []string {
	placed := a.where(
		slices.DeleteFunc(slices.Clone(rels), func(rel *shipper.Release) bool {
			return rel.Spec.Environment.ClusterRequirements.Placement == nil
		}),
		slices.DeleteFunc(slices.Clone(templates), func(env *shipper.ReleaseEnvironment) bool {
			return env == nil || env.ClusterRequirements.Placement == nil
		})...)
	if placed == nil {
		return nil
	}
	return a.regionsOf(placed)
}

// regionsOf are the regions of clusters; nil if one of them is unknown.
func (a App) regionsOf(names []string) []string {
	if a.Clusters == nil {
		return nil
	}
	regions := map[string]string{}
	for _, c := range a.Clusters() {
		regions[c.Name] = c.Spec.Region
	}
	out := make([]string, 0, len(names))
	for _, name := range names {
		region, known := regions[name]
		if !known {
			return nil
		}
		out = append(out, region)
	}
	return out
}
