// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/response"
	"shipper.dev/shipper/webhook/templatecheck"
)

// warnOfPlacement warns of names that no Cluster has, and when fewer clusters fit a placement than it wants. Clusters may join or change
// later.
func warnOfPlacement(a *response.Response, p *shipper.Placement, d placement.Decision, clusters []shipper.Cluster) {
	if p == nil {
		return
	}
	for _, unmatched := range placement.Unmatched(p, clusters) {
		a.Warn("spec.template.clusterRequirements.placement.%s", unmatched)
	}
	unknown := unknownNames(p, clusters)
	if len(unknown) > 0 {
		a.Warn("%s", describeUnknown(unknown, clusters))
	}
	if len(d.Chosen) > 0 {
		if why := d.Unfulfilled(); len(d.Chosen)+len(unknown) < d.Wanted && why != "" {
			a.Warn("%s", why)
		}
		return
	}
	if templatecheck.Wanted(shipper.ClusterRequirements{Placement: p}) == 0 { // that has its own warning
		return
	}
	// A warning names these already.
	d.Verdicts = slices.DeleteFunc(slices.Clone(d.Verdicts), func(v placement.Verdict) bool { return slices.Contains(unknown, v.Cluster) })
	why := strings.Join(describeRejected(d), "; ")
	if len(clusters) == 0 {
		why = "there are no Clusters"
	}
	if why != "" {
		why = ": " + why
	}
	a.Warn("%sno clusters fit its placement as they are now%s", shipper.MightNotRollOut, why)
}

// maxNearest bounds the names that are compared with those of all Clusters.
const maxNearest = 5

// unknownNames are the names of PickFixed of which there is no Cluster, sorted.
func unknownNames(p *shipper.Placement, clusters []shipper.Cluster) []string {
	if p.Type != shipper.PickFixed {
		return nil
	}
	var out []string
	for _, name := range p.Clusters {
		if !slices.ContainsFunc(clusters, func(c shipper.Cluster) bool { return c.Name == name }) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// describeUnknown says of names that no Cluster has what will become of them, and which names there are.
func describeUnknown(unknown []string, clusters []shipper.Cluster) string {
	quoted, known := make([]string, len(unknown)), make([]string, len(clusters))
	for i := range clusters {
		known[i] = clusters[i].Name
	}
	for i, name := range unknown {
		quoted[i] = strconv.Quote(name)
		if i >= maxNearest {
			continue
		}
		if nearest := placement.Nearest(name, slices.Values(known)); nearest != "" {
			quoted[i] += fmt.Sprintf(" (did you mean %q?)", nearest)
		}
	}
	there := abridged(known) + " are there"
	switch len(known) {
	case 0:
		there = "none is there"
	case 1:
		there = known[0] + " is there"
	}
	if len(unknown) == 1 {
		return fmt.Sprintf("there is no Cluster %s; it gets this when it joins (%s)", quoted[0], there)
	}
	return fmt.Sprintf("there are no Clusters %s; they get this when they join (%s)", abridged(quoted), there)
}

// describeChoice describes the clusters that a Release would get and, for a placement, those that it would not, by reason.
func describeChoice(p *shipper.Placement, d placement.Decision) []string {
	if p == nil {
		return []string{fmt.Sprintf("%s: %s", count(len(d.Chosen), "cluster"), abridged(d.Chosen))}
	}
	line := fmt.Sprintf("%d of %s", len(d.Chosen), count(len(d.Verdicts), "cluster"))
	if p.Type == shipper.PickN || p.Type == shipper.PickFixed {
		line = fmt.Sprintf("%d of %s wanted", len(d.Chosen), count(d.Wanted, "cluster"))
	}
	if len(d.Chosen) > 0 {
		line += ": " + abridged(d.Chosen)
	}
	return append([]string{line}, describeRejected(d)...)
}

// describeRejected says of the clusters that were not chosen, by reason, what would change that for the first of them. It leaves
// out those that PickFixed does not name.
func describeRejected(d placement.Decision) []string {
	var reasons []shipper.PlacementReason
	names, first := map[shipper.PlacementReason][]string{}, map[shipper.PlacementReason]string{}
	for _, v := range d.Verdicts {
		if v.Chosen || v.Reason == shipper.PlacementNotNamed {
			continue
		}
		if names[v.Reason] == nil {
			reasons, first[v.Reason] = append(reasons, v.Reason), v.Cluster+": "+v.Message
		}
		names[v.Reason] = append(names[v.Reason], v.Cluster)
	}
	out := make([]string, len(reasons))
	for i, reason := range reasons {
		if out[i] = first[reason]; len(names[reason]) > 1 {
			out[i] = fmt.Sprintf("%s (%s): %s", abridged(names[reason]), reason, first[reason])
		}
	}
	return out
}
