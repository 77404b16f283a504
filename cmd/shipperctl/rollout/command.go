// SPDX-License-Identifier: Apache-2.0

// Package rollout is `shipperctl rollout`: it shows a rollout across its clusters, and moves it.
package rollout

import (
	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"shipper.dev/shipper/cmd/shipperctl/connect"
	"shipper.dev/shipper/cmd/shipperctl/history"
	"shipper.dev/shipper/cmd/shipperctl/output"
)

// options are the flags of all commands of `rollout`.
type options struct {
	connect.Flags
	clock clock.PassiveClock
}

// NewCommand returns `rollout` with its sub-commands.
func NewCommand(clock clock.PassiveClock) *cobra.Command {
	o := &options{clock: clock}
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Show a rollout, and move it",
		Args:  cobra.NoArgs,
		RunE:  connect.NeedsCommand,
	}
	o.RegisterDaily(cmd.PersistentFlags())
	cmd.SetGlobalNormalizationFunc(connect.Spelling)
	cmd.AddCommand(newStatus(o), newAdvance(o), newRetreat(o), newAbort(o), newRollback(o), newHistory(o), newDiff(o), newTest(o))
	return cmd
}

// newStatus returns `rollout status`.
func newStatus(o *options) *cobra.Command {
	var watch bool
	var format output.Format
	cmd := &cobra.Command{
		Use:   "status APPLICATION",
		Short: "Show one rollout across its clusters: steps, pods, traffic, what it waits for and what blocks it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, namespace, err := o.Client()
			if err != nil {
				return err
			}
			s := &show{options: o, client: c, out: cmd.OutOrStdout(), format: format, key: history.Key(namespace, args[0])}
			if watch {
				return s.watch(cmd.Context())
			}
			p, err := s.observe(cmd.Context())
			if err != nil {
				return err
			}
			return s.print(p)
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on showing what changes, until the rollout is complete")
	format.Register(cmd.Flags())
	return cmd
}
