// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Unmatched names the labels and properties that a placement prefers clusters by and that none of clusters has, in the order of its fields:
// they change no choice, and may be misspelt. Requirements are left out, because a decision says which clusters do not meet them.
func Unmatched(p *shipper.Placement, clusters []shipper.Cluster) []string {
	if p == nil || len(clusters) == 0 {
		return nil
	}
	var out []string
	add := func(field, name, what string, has func(*shipper.Cluster) bool) {
		for i := range clusters {
			if has(&clusters[i]) {
				return
			}
		}
		out = append(out, fmt.Sprintf("%s: no Cluster has the %s %q: it changes nothing until one has", field, what, shortened(name, maxQuoted)))
	}
	property := func(field, name string) {
		add(field, name, "property", func(c *shipper.Cluster) bool { return propertyOf(c, name).state != absent })
	}
	if p.Affinity != nil {
		for i := range p.Affinity.Preferred {
			term, at := &p.Affinity.Preferred[i], fmt.Sprintf("affinity.preferred[%d]", i)
			for j, wanted := range term.Properties {
				property(fmt.Sprintf("%s.properties[%d].name", at, j), wanted.Name)
			}
			if term.Sort != nil {
				property(at+".sort.property", term.Sort.Property)
			}
		}
	}
	for i, c := range p.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == shipper.ScheduleAnyway {
			add(fmt.Sprintf("topologySpreadConstraints[%d].topologyKey", i), c.TopologyKey, "label",
				func(cluster *shipper.Cluster) bool { return clusterLabels{cluster}.Has(c.TopologyKey) })
		}
	}
	return out
}

// NamesProperties reports whether a placement judges clusters by labels or properties; nil judges them by neither.
func NamesProperties(p *shipper.Placement) bool {
	names := func(t shipper.ClusterTerm) bool { return t.LabelSelector != nil || len(t.Properties) > 0 }
	switch {
	case p == nil:
		return false
	case p.Affinity == nil:
		return len(p.TopologySpreadConstraints) > 0
	}
	return len(p.TopologySpreadConstraints) > 0 || slices.ContainsFunc(p.Affinity.Required, names) ||
		slices.ContainsFunc(p.Affinity.Preferred, func(t shipper.PreferredClusterTerm) bool { return t.Sort != nil || names(t.ClusterTerm) })
}
