// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

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
				for _, name := range stamp.Clusters(rel) {
					if isPlacedOn(rel, name) {
						placed[name]++
					}
				}
			})
			if err != nil {
				return err
			}
			found := listClusters(list.Items, placed)
			return format.Print(cmd.OutOrStdout(), found, func(width int) string { return clusterTable(found, width) })
		},
	}
	format.Register(cmd.Flags())
	return cmd
}

// listedCluster is a cluster as it is listed, also by `-o json`.
type listedCluster struct {
	Name   string `json:"name"`
	Region string `json:"region"`
	// Ready is the status of the condition Ready: True, False or Unknown; empty while Shipper has not connected.
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

// listClusters sorts clusters by region and name. Names with Releases but without a Cluster come last.
func listClusters(clusters []shipper.Cluster, placed map[string]int) []listedCluster {
	slices.SortFunc(clusters, func(a, b shipper.Cluster) int {
		return cmp.Or(cmp.Compare(a.Spec.Region, b.Spec.Region), cmp.Compare(a.Name, b.Name))
	})
	out := []listedCluster{}
	known := map[string]bool{}
	for i := range clusters {
		c := &clusters[i]
		known[c.Name] = true
		one := listedCluster{
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
			out = append(out, listedCluster{Name: name, Missing: true, Capabilities: []string{}, Releases: placed[name]})
		}
	}
	return out
}

func clusterTable(clusters []listedCluster, width int) string {
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

// ready is the column about the Ready condition.
func (c *listedCluster) ready() string {
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

type listOptions struct {
	cli.Flags
	clusters []string
	all      bool
	format   cli.Format
}

// NewListCommand returns `list` with its sub-commands.
func NewListCommand() *cobra.Command {
	o := &listOptions{}
	cmd := cli.Group("list", "List Releases and where they are placed, or those that are placed on some clusters only",
		o.command("contender", "List the newest Release of each Application", func(l listedRelease) bool { return l.Role == strategy.Contender }),
		o.command("release", "List all Releases", func(listedRelease) bool { return true }),
	)
	flags := cmd.PersistentFlags()
	o.RegisterDaily(flags)
	flags.Lookup("namespace").Usage = "only those of one namespace (default those of all)"
	flags.BoolVarP(&o.all, "all-namespaces", "A", false, "those of all namespaces, which is the default")
	flags.StringSliceVar(&o.clusters, "clusters", nil,
		"only those that are placed on these clusters and on no others, separated by commas (default all, wherever they are)")
	o.format.Register(flags)
	return cmd
}

// command returns a command that lists some of all Releases.
func (o *listOptions) command(name, short string, meant func(listedRelease) bool) *cobra.Command {
	return &cobra.Command{
		Use:     name,
		Aliases: []string{name + "s"},
		Short:   short,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.all && o.Namespace != "" {
				return cli.WithCode(cli.Misused, fmt.Errorf("--all-namespaces and --namespace %s exclude each other", o.Namespace))
			}
			c, _, err := o.Client()
			if err != nil {
				return err
			}
			releases, err := readReleases(cmd.Context(), c, client.InNamespace(o.Namespace))
			if err != nil {
				return err
			}
			found := slices.DeleteFunc(placedOnlyOn(listReleases(releases), o.clusters), func(l listedRelease) bool { return !meant(l) })
			return o.format.Print(cmd.OutOrStdout(), found, func(width int) string { return releaseTable(found, o.clusters, width) })
		},
	}
}

// listedRelease is a Release as it is listed, also by `-o json`.
type listedRelease struct {
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	Application string `json:"application"`
	// Role is contender, incumbent, superseded or retired; empty when its generation is unknown, and while it is
	// being deleted.
	Role strategy.Role `json:"role"`
	// Clusters are those that it is placed on; none while none were chosen.
	Clusters []string `json:"clusters"`
}

func listReleases(releases []shipper.Release) []listedRelease {
	parts := rolesOf(releases)
	slices.SortStableFunc(releases, func(a, b shipper.Release) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Labels[shipper.AppLabel], b.Labels[shipper.AppLabel]),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	out := make([]listedRelease, 0, len(releases))
	for i := range releases {
		rel := &releases[i]
		out = append(out, listedRelease{
			Namespace: rel.Namespace, Name: rel.Name, Application: rel.Labels[shipper.AppLabel],
			Role:     parts[types.NamespacedName{Namespace: rel.Namespace, Name: rel.Name}],
			Clusters: append([]string{}, stamp.Clusters(rel)...),
		})
	}
	return out
}

// placedOnlyOn keeps the Releases that are placed on no other clusters; without clusters, all.
func placedOnlyOn(all []listedRelease, clusters []string) []listedRelease {
	if len(clusters) == 0 {
		return all
	}
	given := map[string]bool{}
	for _, name := range clusters {
		given[strings.TrimSpace(name)] = true
	}
	return slices.DeleteFunc(all, func(l listedRelease) bool {
		elsewhere := func(name string) bool { return !given[name] }
		return len(l.Clusters) == 0 || slices.ContainsFunc(l.Clusters, elsewhere)
	})
}

func releaseTable(found []listedRelease, clusters []string, width int) string {
	switch {
	case len(found) == 0 && len(clusters) > 0:
		return "none is placed on " + strings.Join(clusters, ", ") + " only\n"
	case len(found) == 0:
		return "there are none\n"
	}
	var rows [][]string
	for _, l := range found {
		rows = append(rows, []string{
			l.Namespace, l.Name, cmp.Or(l.Application, "-"), cmp.Or(string(l.Role), "-"), cmp.Or(strings.Join(l.Clusters, ","), "-"),
		})
	}
	return screen.Table(width, []string{"NAMESPACE", "NAME", "APPLICATION", "ROLE", "CLUSTERS"}, rows)
}

// pageSize is how many Releases are asked for at once; values may be large.
const pageSize = 200

// eachRelease calls do for every Release that the options select. It holds one page in memory.
func eachRelease(ctx context.Context, from client.Reader, do func(*shipper.Release), of ...client.ListOption) error {
	next := ""
	for {
		var list shipper.ReleaseList
		if err := from.List(ctx, &list, append([]client.ListOption{client.Limit(pageSize), client.Continue(next)}, of...)...); err != nil {
			return fmt.Errorf("listing releases: %w", err)
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}

func readReleases(ctx context.Context, from client.Reader, of ...client.ListOption) ([]shipper.Release, error) {
	var out []shipper.Release
	err := eachRelease(ctx, from, func(rel *shipper.Release) { out = append(out, *rel) }, of...)
	return out, err
}

// isPlacedOn reports whether a Release is placed on a cluster. One that is being deleted is not.
func isPlacedOn(rel *shipper.Release, cluster string) bool {
	return rel.DeletionTimestamp.IsZero() && slices.Contains(stamp.Clusters(rel), cluster)
}

// rolesOf maps each Release to its role in the rollout of its Application; those without a valid generation, and
// those that go, have none.
func rolesOf(releases []shipper.Release) map[types.NamespacedName]strategy.Role {
	apps := map[types.NamespacedName][]*shipper.Release{}
	for i := range releases {
		rel := &releases[i]
		if rel.DeletionTimestamp.IsZero() {
			app := types.NamespacedName{Namespace: rel.Namespace, Name: rel.Labels[shipper.AppLabel]}
			apps[app] = append(apps[app], rel)
		}
	}
	out := map[types.NamespacedName]strategy.Role{}
	for _, rels := range apps {
		ordered, _ := stamp.SortByGeneration(rels)
		for i, role := range strategy.Roles(ordered) {
			out[types.NamespacedName{Namespace: ordered[i].Namespace, Name: ordered[i].Name}] = role
		}
	}
	return out
}
