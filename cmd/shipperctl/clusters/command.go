// SPDX-License-Identifier: Apache-2.0

// Package clusters has the commands about clusters and the Releases placed on them: `shipperctl clusters` sets clusters up, joins,
// lists, drains and removes them, `list` prints placements, and `clean` takes decommissioned clusters off Releases.
package clusters

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/install"
)

// options are the flags that all commands share.
type options struct {
	cli.Flags
	webhookIgnore bool
	timeout       time.Duration
	clock         clock.WithTicker
}

// NewCommand returns `clusters` with its sub-commands. They write to the command's output.
func NewCommand() *cobra.Command {
	o := &options{clock: clock.RealClock{}}
	cmd := &cobra.Command{
		Use:   "clusters",
		Short: "Set up the management cluster, join application clusters to it, and look after them",
		Long: "Set up the management cluster, then join application clusters to it. Both can be repeated: what is already so is\n" +
			"left alone. They do not deploy Shipper itself. The other commands look after clusters that are joined.",
		Args: cobra.NoArgs,
		RunE: cli.NeedsCommand,
	}
	o.Register(cmd.PersistentFlags())
	cmd.SetGlobalNormalizationFunc(cli.NormalizeFlag)

	setup := &cobra.Command{
		Use:   "setup",
		Short: "Set up a cluster",
		Args:  cobra.NoArgs,
		RunE:  cli.NeedsCommand,
	}
	o.registerWriting(setup.PersistentFlags())
	setup.AddCommand(newSetupManagement(o))
	join := newJoin(o)
	o.registerWriting(join.Flags())
	cmd.AddCommand(setup, join, newList(o), newCheck(o), newCordon(o, true), newCordon(o, false), newDrain(o), newRevoke(o), newRemove(o))
	return cmd
}

// registerWriting adds the flags of the commands that set clusters up.
func (o *options) registerWriting(flags *pflag.FlagSet) {
	flags.BoolVar(&o.webhookIgnore, "webhook-ignore", false,
		"let writes to Shipper's objects pass while the webhook does not answer (failurePolicy Ignore)")
	flags.DurationVar(&o.timeout, "timeout", install.DefaultPatience,
		"how long to wait for what a cluster does by itself: serving a kind, issuing a token")
}

// client returns a client of the management cluster for what these commands read and write of clusters that are joined.
func (o *options) client() (client.Client, error) {
	config, err := o.Management()
	if err != nil {
		return nil, err
	}
	return cli.NewClient(config, corev1.AddToScheme, shipper.AddToScheme)
}
