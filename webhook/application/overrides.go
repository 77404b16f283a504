// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"shipper.dev/shipper/apis/rules/override"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// maxOverridesNamed is how many ResourceOverrides a plan names; API servers shorten long warnings.
const maxOverridesNamed = 8

// planOverrides describes the ResourceOverrides that the next Release copies, and in how many of its clusters each has a rule; empty if
// there are none.
func (w *Webhook) planOverrides(ctx context.Context, app *shipper.Application, p plan) string {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	goal := stamp.RestoredBy(p.existing, p.next)
	copies, err := w.State.OverridesBearing(ctx, app, goal != nil)
	if err != nil {
		return fmt.Sprintf("ResourceOverrides are not shown: %v", err)
	}
	if goal != nil {
		copies = override.Restored(goal.Spec.Overrides, copies)
	}
	return describeOverrides(copies, p.choice.Chosen, w.State.Clusters())
}

// describeOverrides describes copies of ResourceOverrides, and in how many of the chosen clusters each has a rule.
func describeOverrides(copies []shipper.ReleaseOverride, chosen []string, clusters []shipper.Cluster) string {
	if len(copies) == 0 {
		return ""
	}
	var in []*shipper.Cluster
	for i := range clusters {
		if slices.Contains(chosen, clusters[i].Name) {
			in = append(in, &clusters[i])
		}
	}
	var parts []string
	for i := range copies[:min(len(copies), maxOverridesNamed)] {
		parts = append(parts, describeOverride(&copies[i], in))
	}
	if more := len(copies) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	verb := "bear"
	if len(copies) == 1 {
		verb = "bears"
	}
	return fmt.Sprintf("%s %s on it: %s", count(len(copies), "ResourceOverride"), verb, strings.Join(parts, ", "))
}

func describeOverride(c *shipper.ReleaseOverride, in []*shipper.Cluster) string {
	out := c.Name
	if c.Mandatory {
		out += " (mandatory)"
	}
	n := 0
	for _, cluster := range in {
		if slices.ContainsFunc(c.Rules, func(r shipper.OverrideRule) bool { return override.InCluster(&r, cluster) }) {
			n++
		}
	}
	switch {
	case len(in) == 0: // none is chosen yet
		return out
	case n == len(in):
		return out + " in " + all(len(in))
	}
	return fmt.Sprintf("%s in %d of %s", out, n, count(len(in), "cluster"))
}

// all is a number of clusters, and that they are all.
func all(n int) string {
	if n == 1 {
		return "its cluster"
	}
	return fmt.Sprintf("all %d clusters", n)
}
