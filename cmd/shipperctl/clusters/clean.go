// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// NewCleanCommand returns `clean` with its sub-commands.
func NewCleanCommand() *cobra.Command {
	o := &cli.Flags{}
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Tidy up after clusters, or Shipper itself, that are gone",
		Args:  cobra.NoArgs,
		RunE:  cli.NeedsCommand,
	}
	o.Register(cmd.PersistentFlags())
	cmd.SetGlobalNormalizationFunc(cli.NormalizeFlag)
	cmd.AddCommand(newDecommissioned(o), newFinalizers(o))
	return cmd
}

// newDecommissioned returns `clean decommissioned-clusters`.
func newDecommissioned(o *cli.Flags) *cobra.Command {
	var names []string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "decommissioned-clusters",
		Short: "Take clusters off the Releases that are placed there",
		Long: "Take clusters off the Releases that are placed there. Other clusters of a Release are not touched. A Release that\n" +
			"is on no other cluster is left as it is, and named.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			gone, err := namesOf(names)
			if err != nil {
				return err
			}
			config, err := o.Management()
			if err != nil {
				return err
			}
			c, err := cli.NewClient(config, shipper.AddToScheme)
			if err != nil {
				return err
			}
			cl := cleaner{client: c, out: cmd.OutOrStdout(), dryRun: dryRun}
			return cl.clean(cmd.Context(), gone)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&names, "decommissioned-clusters", nil,
		"names of the clusters, separated by commas, also as --decommissionedClusters")
	flags.BoolVar(&dryRun, "dry-run", false, "say what would be done, and do nothing, also as --dryrun")
	return cmd
}

// cleaner takes clusters off Releases.
type cleaner struct {
	client client.Client
	out    io.Writer
	dryRun bool
}

// clean goes on after a Release that cannot be changed, and returns an error at the end.
func (c *cleaner) clean(ctx context.Context, gone []string) error {
	releases, err := readReleases(ctx, c.client)
	if err != nil {
		return err
	}
	if err := c.remind(ctx, gone); err != nil {
		return err
	}
	p := makePlan(releases, gone)
	for _, name := range p.nowhere {
		c.progressf("no release is placed on cluster %q", name)
	}
	var problems []error
	for _, ch := range p.changes {
		err := c.change(ctx, ch)
		if ctx.Err() != nil {
			return fmt.Errorf("not every release was cleaned: %w", ctx.Err())
		}
		if err != nil {
			problems = append(problems, err)
			c.progressf("release %q: %s -> %s: failed: %v", ch.release, ch.from, ch.to, err)
		}
	}
	live := 0
	for _, k := range p.kept {
		c.progressf("release %q is placed on no other cluster and left as it is: %s", k.release, advice(k))
		if k.live() {
			live++
		}
	}
	verb := "were"
	if c.dryRun {
		verb = "would be"
	}
	c.progressf("%d releases %s changed, %d left as they are, %d failed",
		len(p.changes)-len(problems), verb, len(p.kept), len(problems))
	if live > 0 {
		problems = append(problems, fmt.Errorf("%d releases that may run have nowhere else to go", live))
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("not every release was cleaned: %w", errors.Join(problems...))
}

// advice tells what can be done about a Release that is left.
func advice(k kept) string {
	if k.live() {
		return "roll its application out to other clusters, or choose some: kubectl annotate rel " + k.release.Name + " -n " +
			k.release.Namespace + " " + shipper.ReleaseClustersAnnotation + "=NAME --overwrite"
	}
	return "it has no pods any more; delete it if it is not to be gone back to: kubectl delete rel " + k.release.Name + " -n " +
		k.release.Namespace
}

// remind warns of Clusters that new Releases may still be placed on.
func (c *cleaner) remind(ctx context.Context, gone []string) error {
	var list shipper.ClusterList
	if err := c.client.List(ctx, &list); err != nil {
		return fmt.Errorf("listing clusters: %w", err)
	}
	for i := range list.Items {
		cluster := &list.Items[i]
		if slices.Contains(gone, cluster.Name) && !cluster.Spec.Scheduler.Unschedulable {
			c.progressf("Note: new releases may still be placed on cluster %q: kubectl patch cluster %s --type=merge -p "+
				`'{"spec":{"scheduler":{"unschedulable":true}}}'`, cluster.Name, cluster.Name)
		}
	}
	return nil
}

// change rewrites the annotation, unless it says something else by now.
func (c *cleaner) change(ctx context.Context, ch change) error {
	if c.dryRun {
		c.progressf("release %q: %s -> %s (dry run)", ch.release, ch.from, ch.to)
		return nil
	}
	path := "/metadata/annotations/" + strings.ReplaceAll(shipper.ReleaseClustersAnnotation, "/", "~1")
	patch, err := json.Marshal([]map[string]string{
		{"op": "test", "path": path, "value": ch.from}, {"op": "replace", "path": path, "value": ch.to},
	})
	if err != nil {
		return fmt.Errorf("writing a patch: %w", err)
	}
	rel := &shipper.Release{}
	rel.Namespace, rel.Name = ch.release.Namespace, ch.release.Name
	if err := c.client.Patch(ctx, rel, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		if apierrors.IsNotFound(err) {
			return nil // it went meanwhile
		}
		return fmt.Errorf("taking clusters off release %q: %w", ch.release, err)
	}
	c.progressf("release %q: %s -> %s", ch.release, ch.from, ch.to)
	return nil
}

func (c *cleaner) progressf(format string, args ...any) { fmt.Fprintf(c.out, format+"\n", args...) }
