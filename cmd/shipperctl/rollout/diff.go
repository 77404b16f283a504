// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

func newDiff(o *options) *cobra.Command {
	var format cli.Format
	var drift bool
	cmd := &cobra.Command{
		Use:   "diff APPLICATION [FROM [TO]]",
		Short: "Show what changes from one release to another (default from the one before the newest to the newest)",
		Long: "Show what changes from one release to another: chart, values, strategy and clusters by lines, and the copies of\n" +
			"ResourceOverrides by their names and digests. Without FROM, from the release before the newest to the newest.",
		Args: cobra.RangeArgs(1, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if drift {
				return o.printDrift(cmd, args, format)
			}
			_, _, rels, err := o.read(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			from, to, err := between(rels, args[1:])
			if err != nil {
				return err
			}
			text, err := difference(from, to)
			if err != nil {
				return err
			}
			found := releaseDifference{
				From: from.Name, To: to.Name, Before: from.Spec.Environment, After: to.Spec.Environment, Diff: text,
				Overrides: overrideChanges(from.Spec.Overrides, to.Spec.Overrides),
			}
			return format.Print(cmd.OutOrStdout(), found, func(int) string {
				return cmp.Or(text, fmt.Sprintf("releases %s and %s have the same environment\n", from.Name, to.Name)) +
					overrideText(from.Name, to.Name, found.Overrides)
			})
		},
	}
	cmd.Flags().BoolVar(&drift, "drift", false, "show what differs in clusters from what was released, unless driftPolicy is Ignore")
	format.Register(cmd.Flags())
	return cmd
}

// releaseDifference is between two Releases, in `-o json`.
type releaseDifference struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Before and After are their environments.
	Before shipper.ReleaseEnvironment `json:"before"`
	After  shipper.ReleaseEnvironment `json:"after"`
	// Diff is as diff -u has it; empty when they are the same.
	Diff string `json:"diff"`
	// Overrides are the copies of ResourceOverrides that differ; absent if none does.
	Overrides []overrideChange `json:"overrides,omitempty"`
}

func between(rels []*shipper.Release, names []string) (from, to *shipper.Release, err error) {
	find := func(name string) (*shipper.Release, error) {
		for _, rel := range rels {
			if rel.Name == name {
				return rel, nil
			}
		}
		return nil, fmt.Errorf("the application has no release %s: `shipperctl rollout history` lists those it has", name)
	}
	to = rels[len(rels)-1]
	switch len(names) {
	case 0:
		if len(rels) < 2 {
			return nil, nil, fmt.Errorf("release %s is the only one", to.Name)
		}
		return rels[len(rels)-2], to, nil
	case 2:
		if to, err = find(names[1]); err != nil {
			return nil, nil, err
		}
	}
	from, err = find(names[0])
	return from, to, err
}

// difference is the diff -u of two environments; empty if they are the same.
func difference(from, to *shipper.Release) (string, error) {
	before, err := yaml.Marshal(from.Spec.Environment)
	if err != nil {
		return "", fmt.Errorf("writing the environment of %s: %w", from.Name, err)
	}
	after, err := yaml.Marshal(to.Spec.Environment)
	if err != nil {
		return "", fmt.Errorf("writing the environment of %s: %w", to.Name, err)
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(string(before)), B: difflib.SplitLines(string(after)), FromFile: from.Name, ToFile: to.Name, Context: 3,
	})
	if err != nil {
		return "", fmt.Errorf("comparing %s with %s: %w", from.Name, to.Name, err)
	}
	return text, nil
}

// clusterDrift is the drift of a Release in one cluster, as `-o json` prints it.
type clusterDrift struct {
	Release string `json:"release"`
	Cluster string `json:"cluster"`

	shipper.InstalledDrift `json:",inline"`
}

// drifted reads the drift in the targets of an Application, the newest Release first.
func drifted(ctx context.Context, c client.Client, key client.ObjectKey, rels []*shipper.Release) ([]clusterDrift, error) {
	var targets shipper.InstallationTargetList
	if err := c.List(ctx, &targets, cli.OfApplication(key)...); err != nil {
		return nil, fmt.Errorf("listing installation targets of %s: %w", key, err)
	}
	out := []clusterDrift{}
	for _, rel := range slices.Backward(rels) {
		for i := range targets.Items {
			if targets.Items[i].Name != rel.Name {
				continue
			}
			for _, cluster := range targets.Items[i].Status.Clusters {
				if cluster.Drift != nil {
					out = append(out, clusterDrift{Release: rel.Name, Cluster: cluster.Name, InstalledDrift: *cluster.Drift})
				}
			}
		}
	}
	return out, nil
}

// driftText shows the released value after a minus, the cluster's after a plus.
func driftText(all []clusterDrift, policy shipper.DriftPolicy) string {
	if len(all) == 0 {
		if policy == shipper.DriftIgnore {
			return "Shipper does not compare objects in clusters: driftPolicy is Ignore\n"
		}
		return "objects in clusters are as released\n"
	}
	var out strings.Builder
	for _, d := range all {
		for _, f := range d.Fields {
			by := ""
			if f.Manager != "" {
				by = ", written by " + f.Manager
			}
			if f.Since != nil {
				by += " at " + f.Since.UTC().Format(time.RFC3339)
			}
			fmt.Fprintf(&out, "%s: %s %s (release %s): %s%s\n", d.Cluster, f.Kind, f.Name, d.Release, f.Field, by)
			switch {
			case f.Hidden:
				out.WriteString("  (values of Secrets are not shown)\n")
			default:
				fmt.Fprintf(&out, "- %s\n+ %s\n", cmp.Or(f.Want, notThere), cmp.Or(f.Have, notThere))
			}
		}
		if d.Omitted > 0 {
			fmt.Fprintf(&out, "%s: %d more fields of release %s\n", d.Cluster, d.Omitted, d.Release)
		}
		if d.Message != "" {
			fmt.Fprintf(&out, "%s: %s\n", d.Cluster, d.Message)
		}
	}
	return out.String()
}

// driftNote counts objects of a Release in a cluster that are not as released.
func driftNote(o *observed, release, cluster string) string {
	drift := installedIn(o, release, cluster).Drift
	if drift == nil || drift.Objects == 0 {
		return ""
	}
	first := ""
	if len(drift.Fields) > 0 {
		f := drift.Fields[0]
		first = fmt.Sprintf(" (%s %s %s)", f.Kind, f.Name, f.Field)
	}
	return fmt.Sprintf("%d objects are not as released%s: shipperctl rollout diff %s --drift", drift.Objects, first, o.app.Name)
}

const notThere = "(not there)"

func (o *options) printDrift(cmd *cobra.Command, args []string, format cli.Format) error {
	if len(args) > 1 {
		return cli.WithCode(cli.Misused, errors.New("--drift compares clusters with what was released there, and takes no release"))
	}
	c, app, rels, err := o.read(cmd.Context(), args[0])
	if err != nil {
		return err
	}
	found, err := drifted(cmd.Context(), c, client.ObjectKeyFromObject(app), rels)
	if err != nil {
		return err
	}
	return format.Print(cmd.OutOrStdout(), found, func(int) string { return driftText(found, app.Spec.DriftPolicy) })
}
