// SPDX-License-Identifier: Apache-2.0

// Package clusters has the commands about clusters and the Releases placed on them: `shipperctl clusters` sets clusters up, joins,
// lists, drains and removes them, `list` prints placements, and `clean` takes decommissioned clusters off Releases.
package clusters

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/health"
	"shipper.dev/shipper/cmd/shipperctl/install"
)

type options struct {
	cli.Flags
	webhookIgnore bool
	timeout       time.Duration
	clock         clock.WithTicker
}

// NewCommand returns `clusters` with its sub-commands. They write to the command's output.
func NewCommand() *cobra.Command {
	o := &options{clock: clock.RealClock{}}
	setup, join := cli.Group("setup", "Set up a cluster", newSetupManagement(o)), newJoin(o)
	o.registerWriting(setup.PersistentFlags())
	o.registerWriting(join.Flags())
	cmd := cli.Group("clusters", "Set up the management cluster, join application clusters to it, and look after them",
		setup, join, newList(o), newCheck(o), newCordon(o, true), newCordon(o, false), newDrain(o), newRevoke(o), newRemove(o),
		newGrant(o))
	cmd.Long = "Set up the management cluster, then join application clusters to it. Both can be repeated: objects that are as wanted\n" +
		"stay untouched. They do not deploy Shipper itself. The other commands look after clusters that are joined."
	o.Register(cmd.PersistentFlags())
	return cmd
}

func (o *options) registerWriting(flags *pflag.FlagSet) {
	flags.BoolVar(&o.webhookIgnore, "webhook-ignore", false,
		"let writes to Shipper's objects pass while the webhook does not answer (failurePolicy Ignore)")
	flags.DurationVar(&o.timeout, "timeout", install.DefaultPatience,
		"how long to wait for what a cluster does by itself: serving a kind, issuing a token")
}

// client returns a client of the management cluster for Clusters and Secrets.
func (o *options) client() (client.Client, error) {
	return o.ClientFor(corev1.AddToScheme, shipper.AddToScheme)
}

func newCheck(o *options) *cobra.Command {
	var format cli.Format
	cmd := &cobra.Command{
		Use:   "check NAME",
		Short: "Check whether Shipper can use a cluster: credentials, rights and version",
		Long: "Check whether Shipper can use a cluster. It is asked from here, with the address and the credentials that the management\n" +
			"cluster has for it. Nothing is written.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, cluster, err := o.read(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			findings, version := health.Cluster(cmd.Context(), c, o.Namespace, cluster, o.clock.Now())
			title := "cluster " + cluster.Name
			if version != "" {
				title += " (" + version + ")"
			}
			found := health.Sum([]health.Check{{Title: title, Findings: findings}})
			err = format.Print(cmd.OutOrStdout(), found, func(width int) string { return found.Text(width) })
			if err == nil && found.Broken > 0 {
				err = fmt.Errorf("cluster %s cannot be used: %d broken", cluster.Name, found.Broken)
			}
			return err
		},
	}
	format.Register(cmd.Flags())
	return cmd
}

func newCordon(o *options, on bool) *cobra.Command {
	use, short := "cordon NAME", "Place no new Releases on a cluster; those that are there stay"
	if !on {
		use, short = "uncordon NAME", "Place new Releases on a cluster again"
	}
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, _, err := o.cordon(cmd.Context(), cmd.OutOrStdout(), args[0], on)
			return err
		},
	}
}

// cordon makes a cluster unschedulable, or schedulable, and returns it with a client. Nothing is written when it is so already.
func (o *options) cordon(ctx context.Context, out io.Writer, name string, on bool) (client.Client, *shipper.Cluster, error) {
	c, cluster, err := o.read(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	is := "cordoned"
	if !on {
		is = "open for new Releases"
	}
	if cluster.Spec.Scheduler.Unschedulable == on {
		fmt.Fprintf(out, "cluster %s is %s already\n", name, is)
		return c, cluster, nil
	}
	patch := fmt.Appendf(nil, `{"spec":{"scheduler":{"unschedulable":%t}}}`, on)
	if err := c.Patch(ctx, cluster, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return nil, nil, fmt.Errorf("changing cluster %s: %w", name, err)
	}
	fmt.Fprintf(out, "cluster %s is %s, until the next `clusters join` makes it what clusters.yaml says\n", name, is)
	return c, cluster, nil
}

// read returns a Cluster and a client of its management cluster.
func (o *options) read(ctx context.Context, name string) (client.Client, *shipper.Cluster, error) {
	c, err := o.client()
	if err != nil {
		return nil, nil, err
	}
	cluster := &shipper.Cluster{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
		return nil, nil, fmt.Errorf("reading cluster %s: %w", name, err)
	}
	return c, cluster, nil
}
