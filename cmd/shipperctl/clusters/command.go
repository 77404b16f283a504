// SPDX-License-Identifier: Apache-2.0

// Package clusters is `shipperctl clusters`: it prepares the management cluster and joins application clusters to it.
package clusters

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/configure"
)

// options are the flags that all commands share.
type options struct {
	kubeconfig    string
	context       string
	namespace     string
	webhookIgnore bool
	timeout       time.Duration
}

// NewCommand returns `clusters` with its sub-commands. They write to the command's output.
func NewCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "clusters",
		Short: "Set up the management cluster and join application clusters to it",
		Long: "Set up the management cluster, then join application clusters to it. The commands can be repeated: what is\n" +
			"already so is left alone. They do not deploy Shipper itself.",
		Args: cobra.NoArgs,
		RunE: needsCommand,
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&o.kubeconfig, "kube-config", "",
		"path to the kubeconfig with the contexts to use, also as --kubeconfig (default $KUBECONFIG or ~/.kube/config)")
	flags.StringVar(&o.context, "management-cluster-context", "",
		"context of the management cluster (default the current context)")
	flags.StringVarP(&o.namespace, "shipper-system-namespace", "n", shipper.SystemNamespace,
		"namespace Shipper runs in, also as --namespace")
	flags.BoolVar(&o.webhookIgnore, "webhook-ignore", false,
		"let writes to Shipper's objects pass while the webhook does not answer (failurePolicy Ignore)")
	flags.DurationVar(&o.timeout, "timeout", configure.DefaultPatience,
		"how long to wait for what a cluster does by itself: serving a kind, issuing a token")
	cmd.SetGlobalNormalizationFunc(spelling)

	setup := &cobra.Command{
		Use:   "setup",
		Short: "Set up a cluster",
		Args:  cobra.NoArgs,
		RunE:  needsCommand,
	}
	setup.AddCommand(newSetupManagement(o))
	cmd.AddCommand(setup, newJoin(o))
	return cmd
}

// needsCommand refuses a command that only has sub-commands, so that a misspelt one does not pass for success.
func needsCommand(cmd *cobra.Command, _ []string) error {
	return fmt.Errorf("%s needs one of its commands: see %s --help", cmd.CommandPath(), cmd.CommandPath())
}

// spelling accepts the flags by the names of the original's code beside those of its documentation.
func spelling(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch name {
	case "kubeconfig":
		name = "kube-config"
	case "namespace":
		name = "shipper-system-namespace"
	}
	return pflag.NormalizedName(name)
}
