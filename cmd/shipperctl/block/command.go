// SPDX-License-Identifier: Apache-2.0

// Package block is `shipperctl block` and `shipperctl override`: it stops rollouts, says what is stopped, and lets one through.
package block

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// options are the flags of all commands of `block`.
type options struct {
	cli.Flags
	clock  clock.PassiveClock
	global bool
}

// NewCommand returns `block` with its sub-commands.
func NewCommand(clock clock.PassiveClock) *cobra.Command {
	o := &options{clock: clock}
	cmd := &cobra.Command{
		Use:   "block",
		Short: "Stop rollouts, and lift such blocks",
		Args:  cobra.NoArgs,
		RunE:  cli.NeedsCommand,
	}
	o.RegisterDaily(cmd.PersistentFlags())
	cmd.SetGlobalNormalizationFunc(cli.NormalizeFlag)
	cmd.PersistentFlags().BoolVarP(&o.global, "global", "g", false,
		"blocks that hold in every namespace: those in namespace "+shipper.GlobalBlocksNamespace)
	cmd.AddCommand(newCreate(o), newList(o), newLift(o))
	return cmd
}

// at returns a client, and the namespace of the blocks that are meant.
func (o *options) at() (client.Client, string, error) {
	if o.global && o.Namespace != "" && o.Namespace != shipper.GlobalBlocksNamespace {
		return nil, "", cli.WithCode(cli.Misused, fmt.Errorf("--global and --namespace %s exclude each other", o.Namespace))
	}
	c, namespace, err := o.Client()
	if o.global {
		namespace = shipper.GlobalBlocksNamespace
	}
	return c, namespace, err
}

// newLift returns `block lift`.
func newLift(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "lift NAME",
		Short: "Delete a block; what it stopped goes on where it stood",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, namespace, err := o.at()
			if err != nil {
				return err
			}
			namespace, name := split(args[0], namespace)
			b := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			if err := c.Delete(cmd.Context(), b); err != nil {
				return fmt.Errorf("lifting block %s/%s: %w", namespace, name, err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "block %s/%s is lifted\n", namespace, name)
			return nil
		},
	}
}

// split reads the name of a block, which may be given as refusals name it, with its namespace.
func split(arg, namespace string) (string, string) {
	if before, name, ok := strings.Cut(arg, "/"); ok {
		return before, name
	}
	return namespace, arg
}
