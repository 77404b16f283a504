// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

// explained says where the next Release of an Application would be placed, as `-o json` prints it.
type explained struct {
	Namespace   string `json:"namespace"`
	Application string `json:"application"`
	// Release is the newest one that has clusters; empty when there is none.
	Release string `json:"release,omitempty"`
	// Current are the clusters that it has.
	Current []string `json:"current,omitempty"`
	// Wanted and Chosen count clusters.
	Wanted int `json:"wanted"`
	Chosen int `json:"chosen"`
	// Problem is why fewer are chosen than wanted; empty when there are enough.
	Problem  string    `json:"problem,omitempty"`
	Clusters []verdict `json:"clusters"`
}

// verdict is the judgement of one cluster.
type verdict struct {
	Name string `json:"name"`
	// Region is empty for a name of PickFixed that no Cluster has.
	Region string                  `json:"region,omitempty"`
	Chosen bool                    `json:"chosen"`
	Reason shipper.PlacementReason `json:"reason"`
	// Message says what would change the verdict; empty for a chosen cluster.
	Message       string `json:"message,omitempty"`
	AffinityScore int32  `json:"affinityScore"`
	SpreadScore   int32  `json:"spreadScore"`
}

// judge is pure but for the clock. Releases are those of the Application, oldest first.
func (o *options) judge(app *shipper.Application, releases []*shipper.Release, clusters []shipper.Cluster) explained {
	around := block.App{
		Name: app.Name, Releases: releases, Clusters: func() []shipper.Cluster { return clusters },
		UnhealthyAfter: o.unhealthyAfter, Now: o.clock.Now(),
	}
	d, err := around.Select(&app.Spec.Template)
	out := explained{
		Namespace: app.Namespace, Application: app.Name, Wanted: d.Wanted, Chosen: len(d.Chosen), Problem: d.Unfulfilled(),
		Clusters: []verdict{},
	}
	if err != nil {
		out.Problem = err.Error()
	}
	for _, rel := range releases {
		if has := stamp.Clusters(rel); len(has) > 0 {
			out.Release, out.Current = rel.Name, has
		}
	}
	regions := map[string]string{}
	for i := range clusters {
		regions[clusters[i].Name] = clusters[i].Spec.Region
	}
	for _, v := range d.Verdicts {
		if err != nil && v.Chosen { // with regions it is all clusters or none
			v.Chosen, v.Message = false, "it fits, and another region has too few"
		}
		out.Clusters = append(out.Clusters, verdict{
			Name: v.Cluster, Region: regions[v.Cluster], Chosen: v.Chosen, Reason: v.Reason, Message: v.Message,
			AffinityScore: v.Affinity, SpreadScore: v.Spread,
		})
	}
	return out
}

// text is for terminals of width columns; 0 is unbounded.
func text(all []explained, width int) string {
	var out strings.Builder
	for i, e := range all {
		if i > 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "application %s/%s: %s\n", e.Namespace, e.Application, e.summary())
		if e.Problem != "" {
			out.WriteString(screen.Hang("  ! ", e.Problem, width))
		}
		if len(e.Clusters) > 0 {
			out.WriteString(e.table(width))
		}
	}
	return out.String()
}

// summary says how many clusters it gets of those that it wants.
func (e *explained) summary() string {
	line := fmt.Sprintf("%d of %d clusters wanted", e.Chosen, e.Wanted)
	if e.Release != "" {
		line += fmt.Sprintf("; Release %s is on %s", e.Release, strings.Join(e.Current, ", "))
	}
	if len(e.Clusters) == 0 {
		line += "; there are no Clusters"
	}
	return line
}

// table has the chosen clusters first.
func (e *explained) table(width int) string {
	sorted := slices.Clone(e.Clusters)
	rank := func(v verdict) int {
		if v.Chosen {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(sorted, func(a, b verdict) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(a.Name, b.Name)) })
	rows := make([][]string, len(sorted))
	for i, v := range sorted {
		chosen := "no"
		if v.Chosen {
			chosen = "yes"
		}
		rows[i] = []string{v.Name, cmp.Or(v.Region, "-"), chosen, string(v.Reason), score(v.AffinityScore), score(v.SpreadScore), v.Message}
	}
	return screen.Table(width, []string{"CLUSTER", "REGION", "CHOSEN", "REASON", "AFFINITY", "SPREAD", "WHY"}, rows)
}

// score is empty for 0: columns without any score are left out.
func score(n int32) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(int(n))
}
