// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

// listOptions are the flags that both commands have.
type listOptions struct {
	cli.Flags
	clusters []string
	all      bool
	format   cli.Format
}

// NewListCommand returns `list` with its sub-commands.
func NewListCommand() *cobra.Command {
	o := &listOptions{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List Releases and where they are placed, or those that are placed on some clusters only",
		Args:  cobra.NoArgs,
		RunE:  cli.NeedsCommand,
	}
	flags := cmd.PersistentFlags()
	o.RegisterDaily(flags)
	flags.Lookup("namespace").Usage = "only those of one namespace (default those of all)"
	flags.BoolVarP(&o.all, "all-namespaces", "A", false, "those of all namespaces, which is the default")
	flags.StringSliceVar(&o.clusters, "clusters", nil,
		"only those that are placed on these clusters and on no others, separated by commas (default all, wherever they are)")
	o.format.Register(flags)
	cmd.SetGlobalNormalizationFunc(cli.NormalizeFlag)
	cmd.AddCommand(
		o.command("contender", "List the newest Release of each Application", func(l ListedRelease) bool { return l.Role == strategy.Contender }),
		o.command("release", "List all Releases", func(ListedRelease) bool { return true }),
	)
	return cmd
}

// command returns one that lists what of all Releases is meant.
func (o *listOptions) command(name, short string, meant func(ListedRelease) bool) *cobra.Command {
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
			found := slices.DeleteFunc(placedOnlyOn(listReleases(releases), o.clusters), func(l ListedRelease) bool { return !meant(l) })
			return o.format.Print(cmd.OutOrStdout(), found, func() string {
				width, _ := screen.Of(cmd.OutOrStdout())
				return releaseTable(found, o.clusters, width)
			})
		},
	}
}

// ListedRelease is a Release as it is listed, also by `-o json`.
type ListedRelease struct {
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	Application string `json:"application"`
	// Role is contender, incumbent, superseded or retired; empty when its place in history cannot be told, and while it is
	// being deleted.
	Role strategy.Role `json:"role"`
	// Clusters are those that it is placed on; none while none were chosen.
	Clusters []string `json:"clusters"`
}

// listReleases sorts Releases by namespace and Application, the newest first.
func listReleases(releases []shipper.Release) []ListedRelease {
	parts := rolesOf(releases)
	slices.SortStableFunc(releases, func(a, b shipper.Release) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Labels[shipper.AppLabel], b.Labels[shipper.AppLabel]),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	out := make([]ListedRelease, 0, len(releases))
	for i := range releases {
		rel := &releases[i]
		out = append(out, ListedRelease{
			Namespace: rel.Namespace, Name: rel.Name, Application: rel.Labels[shipper.AppLabel],
			Role:     parts[types.NamespacedName{Namespace: rel.Namespace, Name: rel.Name}],
			Clusters: append([]string{}, strategy.Clusters(rel)...),
		})
	}
	return out
}

// placedOnlyOn keeps what is placed on these clusters and nowhere else; without any, all.
func placedOnlyOn(all []ListedRelease, clusters []string) []ListedRelease {
	if len(clusters) == 0 {
		return all
	}
	given := map[string]bool{}
	for _, name := range clusters {
		given[strings.TrimSpace(name)] = true
	}
	return slices.DeleteFunc(all, func(l ListedRelease) bool {
		elsewhere := func(name string) bool { return !given[name] }
		return len(l.Clusters) == 0 || slices.ContainsFunc(l.Clusters, elsewhere)
	})
}

// releaseTable is for people, in lines of some columns.
func releaseTable(found []ListedRelease, clusters []string, width int) string {
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
