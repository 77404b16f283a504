// SPDX-License-Identifier: Apache-2.0

// Package placement chooses the clusters a Release runs in.
//
// Every cluster has a score for every application, computed from a hash of both names: an application always prefers the same
// clusters, different applications prefer different ones, and a cluster that is added or removed moves only the applications
// that prefer it. For regions, Choose takes in each region the schedulable clusters with the highest scores that offer all
// required capabilities.
//
// For a placement, Decide filters the clusters, ranks those that fit, and picks. It ranks by spread, then affinity, then whether
// the Release before has the cluster, then score, then name. While the placement is the one by which the clusters of the Release
// before were chosen, these are kept, whatever has become of them. Both say of each cluster why it is chosen or not: Select.
//
// Properties are compared as quantities, and kubernetes as a version: as many of its numbers are compared as are wanted, so that
// 1.33.4 is equal to 1.33, and what a distribution appends to it is left out. Spread counts as values of a label those of all
// clusters that match the required affinity and have joined, also of tainted and unready ones, as it does for Pods and Nodes.
package placement

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Error says why no clusters could be chosen. A retry helps only with other clusters or other requirements.
type Error struct {
	// Reason is one of NoRegionsSpecified, DuplicateCapabilityRequirement, NotEnoughClustersInRegion and
	// NotEnoughCapableClustersInRegion.
	Reason string
	// Message says for users which region lacks which clusters.
	Message string
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

// Choose returns the names of the clusters for an application with these requirements, sorted. The result does not depend on
// the order of clusters. Every error is an *Error that lists all regions that fail.
func Choose(app string, req shipper.ClusterRequirements, clusters []shipper.Cluster) ([]string, error) {
	if err := impossible(req); err != nil {
		return nil, err
	}
	regions := regionsOf(req)
	byRegion := schedulable(clusters)
	var few, incapable []string
	var chosen []string
	for _, region := range regions {
		inRegion := byRegion[region.name]
		if region.wanted > len(inRegion) {
			few = append(few, fmt.Sprintf("region %q has %d of the %d schedulable clusters wanted%s",
				region.name, len(inRegion), region.wanted, suggestion(region.name, clusters)+taintedIn(region.name, clusters)))
			continue
		}
		capable := capableOf(inRegion, req.Capabilities)
		if region.wanted > len(capable) {
			incapable = append(incapable, fmt.Sprintf("region %q has %d of the %d clusters wanted that offer %s",
				region.name, len(capable), region.wanted, strings.Join(slices.Sorted(slices.Values(req.Capabilities)), ", ")))
			continue
		}
		for _, c := range preferred(app, capable)[:region.wanted] {
			chosen = append(chosen, c.Name)
		}
	}
	if len(few) > 0 {
		return nil, &Error{Reason: shipper.NotEnoughClustersInRegion, Message: strings.Join(few, "; ")}
	}
	if len(incapable) > 0 {
		return nil, &Error{Reason: shipper.NotEnoughCapableClustersInRegion, Message: strings.Join(incapable, "; ")}
	}
	slices.Sort(chosen)
	return chosen, nil
}

// taintedIn says how many clusters of a region taints keep off; empty when none.
func taintedIn(region string, clusters []shipper.Cluster) string {
	n := 0
	for i := range clusters {
		if clusters[i].Spec.Region == region && len(untolerated(clusters[i].Spec.Taints, nil)) > 0 {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (tainted: %d; a placement can tolerate taints)", n)
}

// Score is how much an application prefers a cluster; the highest is chosen first. The formula is that of the original, so that
// its Releases are placed on the same clusters again.
func Score(app string, cluster *shipper.Cluster) float64 {
	identity := cluster.Name
	if cluster.Spec.Scheduler.Identity != nil {
		identity = *cluster.Spec.Scheduler.Identity
	}
	weight := shipper.DefaultClusterWeight
	if cluster.Spec.Scheduler.Weight != nil {
		weight = *cluster.Spec.Scheduler.Weight
	}
	h := xxhash.Sum64String(app + identity)
	return -float64(weight) * math.Log(float64(h)/float64(math.MaxUint64))
}

// region is a region and the number of clusters wanted in it, never negative.
type region struct {
	name   string
	wanted int
}

// impossible returns an *Error when the requirements can choose no clusters, whichever there are.
func impossible(req shipper.ClusterRequirements) error {
	if len(req.Regions) == 0 {
		return &Error{Reason: shipper.NoRegionsSpecified, Message: "clusterRequirements.regions is empty: name a region"}
	}
	seen := map[string]bool{}
	var twice []string
	for _, capability := range req.Capabilities {
		if seen[capability] && !slices.Contains(twice, capability) {
			twice = append(twice, capability)
		}
		seen[capability] = true
	}
	if len(twice) > 0 {
		slices.Sort(twice)
		return &Error{
			Reason:  shipper.DuplicateCapabilityRequirement,
			Message: "clusterRequirements.capabilities has more than once: " + strings.Join(twice, ", "),
		}
	}
	return nil
}

// regionsOf returns the regions sorted by name. If a region is named twice, the last entry counts.
func regionsOf(req shipper.ClusterRequirements) []region {
	wanted := map[string]int{}
	for _, r := range req.Regions {
		wanted[r.Name] = 1
		if r.Replicas != nil {
			wanted[r.Name] = int(max(0, *r.Replicas))
		}
	}
	out := make([]region, 0, len(wanted))
	for name, n := range wanted {
		out = append(out, region{name: name, wanted: n})
	}
	slices.SortFunc(out, func(a, b region) int { return strings.Compare(a.name, b.name) })
	return out
}

// schedulable groups by region the clusters that may take new Releases. One that is being deleted or has a taint may not, for
// regions tolerate no taint.
func schedulable(clusters []shipper.Cluster) map[string][]*shipper.Cluster {
	out := map[string][]*shipper.Cluster{}
	for i := range clusters {
		c := &clusters[i]
		if !c.Spec.Scheduler.Unschedulable && c.DeletionTimestamp.IsZero() && len(untolerated(c.Spec.Taints, nil)) == 0 {
			out[c.Spec.Region] = append(out[c.Spec.Region], c)
		}
	}
	return out
}

func capableOf(clusters []*shipper.Cluster, capabilities []string) []*shipper.Cluster {
	var out []*shipper.Cluster
	for _, c := range clusters {
		missing := func(capability string) bool { return !slices.Contains(c.Spec.Capabilities, capability) }
		if !slices.ContainsFunc(capabilities, missing) {
			out = append(out, c)
		}
	}
	return out
}

// preferred sorts clusters by falling score; equal scores, which weight 0 makes, by name.
func preferred(app string, clusters []*shipper.Cluster) []*shipper.Cluster {
	slices.SortFunc(clusters, func(a, b *shipper.Cluster) int {
		if d := cmp.Compare(Score(app, b), Score(app, a)); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	return clusters
}
