// SPDX-License-Identifier: Apache-2.0

// Package rollout is `shipperctl rollout`: it shows a rollout across its clusters, and moves it.
package rollout

import (
	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// options are the flags of all commands of `rollout`.
type options struct {
	cli.Flags
	clock clock.PassiveClock
}

// NewCommand returns `rollout` with its sub-commands.
func NewCommand(clock clock.PassiveClock) *cobra.Command {
	o := &options{clock: clock}
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Show a rollout, and move it",
		Args:  cobra.NoArgs,
		RunE:  cli.NeedsCommand,
	}
	o.RegisterDaily(cmd.PersistentFlags())
	cmd.SetGlobalNormalizationFunc(cli.NormalizeFlag)
	cmd.AddCommand(newStatus(o), newAdvance(o), newRetreat(o), newAbort(o), newRollback(o), newHistory(o), newDiff(o), newTest(o))
	return cmd
}

// newStatus returns `rollout status`.
func newStatus(o *options) *cobra.Command {
	var watch, all bool
	var format cli.Format
	var w awaiting
	cmd := &cobra.Command{
		Use:   "status APPLICATION",
		Short: "Show one rollout across its clusters: steps, pods, traffic, what it waits for and what blocks it",
		Long: "Show one rollout across its clusters: steps, pods, traffic, what it waits for and what blocks it. With --wait it ends when\n" +
			"a step is achieved, for pipelines. With --all-namespaces it has one line for each application.",
		Args: func(cmd *cobra.Command, args []string) error {
			if all {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.check(cmd); err != nil {
				return err
			}
			if all {
				if watch || w.wait || o.Namespace != "" {
					return cli.WithCode(cli.Misused, errAlone)
				}
				return o.printAll(cmd, format)
			}
			c, namespace, err := o.Client()
			if err != nil {
				return err
			}
			s := &show{options: o, client: c, out: cmd.OutOrStdout(), format: format, key: cli.ApplicationKey(namespace, args[0])}
			switch {
			case w.wait:
				return w.until(cmd.Context(), s, watch)
			case watch:
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
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "show the rollouts of all applications, one line each")
	w.register(cmd)
	format.Register(cmd.Flags())
	return cmd
}
