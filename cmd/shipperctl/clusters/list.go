// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

// newList returns `clusters list`.
func newList(o *options) *cobra.Command {
	var format cli.Format
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the clusters: whether Shipper reaches them, what they offer, and how many Releases are placed there",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			var list shipper.ClusterList
			if err := c.List(cmd.Context(), &list); err != nil {
				return fmt.Errorf("listing clusters: %w", err)
			}
			placed := map[string]int{}
			err = eachRelease(cmd.Context(), c, func(rel *shipper.Release) {
				for _, name := range strategy.Clusters(rel) {
					if isPlacedOn(rel, name) {
						placed[name]++
					}
				}
			})
			if err != nil {
				return err
			}
			found := listClusters(list.Items, placed)
			return format.Print(cmd.OutOrStdout(), found, func() string {
				width, _ := screen.Of(cmd.OutOrStdout())
				return clusterTable(found, width)
			})
		},
	}
	format.Register(cmd.Flags())
	return cmd
}

// ListedCluster is a cluster as it is listed, also by `-o json`.
type ListedCluster struct {
	Name   string `json:"name"`
	Region string `json:"region"`
	// Ready is the status of the condition Ready: True, False or Unknown; empty while nobody has looked.
	Ready string `json:"ready"`
	// Reason and Message are why it is not ready.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Missing is true of a name where Releases are placed without a Cluster, Deleting of one that goes.
	Missing  bool `json:"missing"`
	Deleting bool `json:"deleting"`
	// Cordoned is true when it takes no new Releases.
	Cordoned     bool     `json:"cordoned"`
	Weight       int32    `json:"weight"`
	Capabilities []string `json:"capabilities"`
	// Releases are how many are placed there, old ones included.
	Releases int    `json:"releases"`
	Version  string `json:"version"`
}

// listClusters sorts clusters by region and name, and then those that there are not but where Releases are placed.
func listClusters(clusters []shipper.Cluster, placed map[string]int) []ListedCluster {
	slices.SortFunc(clusters, func(a, b shipper.Cluster) int {
		return cmp.Or(cmp.Compare(a.Spec.Region, b.Spec.Region), cmp.Compare(a.Name, b.Name))
	})
	out := []ListedCluster{}
	known := map[string]bool{}
	for i := range clusters {
		c := &clusters[i]
		known[c.Name] = true
		one := ListedCluster{
			Name: c.Name, Region: c.Spec.Region, Deleting: !c.DeletionTimestamp.IsZero(),
			Cordoned: c.Spec.Scheduler.Unschedulable, Weight: shipper.DefaultClusterWeight,
			Capabilities: append([]string{}, c.Spec.Capabilities...), Releases: placed[c.Name], Version: c.Status.KubernetesVersion,
		}
		if c.Spec.Scheduler.Weight != nil {
			one.Weight = *c.Spec.Scheduler.Weight
		}
		if ready := shipper.FindCondition(c.Status.Conditions, shipper.ClusterReady); ready != nil {
			one.Ready, one.Reason, one.Message = string(ready.Status), ready.Reason, ready.Message
		}
		out = append(out, one)
	}
	for _, name := range slices.Sorted(maps.Keys(placed)) {
		if !known[name] {
			out = append(out, ListedCluster{Name: name, Missing: true, Capabilities: []string{}, Releases: placed[name]})
		}
	}
	return out
}

// clusterTable is for people, in lines of some columns.
func clusterTable(clusters []ListedCluster, width int) string {
	if len(clusters) == 0 {
		return "there are no clusters: `shipperctl clusters join` joins some\n"
	}
	var rows [][]string
	for _, c := range clusters {
		scheduling, weight := "on", fmt.Sprint(c.Weight)
		switch {
		case c.Missing:
			scheduling, weight = "-", "-"
		case c.Cordoned:
			scheduling = "cordoned"
		}
		rows = append(rows, []string{
			c.Name, cmp.Or(c.Region, "-"), c.ready(), scheduling, weight, cmp.Or(strings.Join(c.Capabilities, ","), "-"),
			fmt.Sprint(c.Releases), cmp.Or(c.Version, "-"),
		})
	}
	head := []string{"CLUSTER", "REGION", "READY", "SCHEDULING", "WEIGHT", "CAPABILITIES", "RELEASES", "VERSION"}
	return screen.Table(width, head, rows)
}

// ready says whether Shipper reaches a cluster, and why not.
func (c *ListedCluster) ready() string {
	switch {
	case c.Missing:
		return "there is no Cluster"
	case c.Deleting:
		return "is being deleted"
	case c.Ready == "":
		return "not looked at yet"
	case c.Ready == string(corev1.ConditionTrue):
		return "yes"
	}
	return strings.TrimSpace(strings.ToLower(c.Ready) + " " + c.Reason)
}
