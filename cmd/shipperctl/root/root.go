// SPDX-License-Identifier: Apache-2.0

// Package root assembles the command line of shipperctl, and of `kubectl shipper`: kubectl runs kubectl-shipper in the PATH as a
// plugin, and kubectl_complete-shipper to complete its arguments.
package root

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"shipper.dev/shipper/cmd/shipperctl/backup"
	"shipper.dev/shipper/cmd/shipperctl/block"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/clusters"
	"shipper.dev/shipper/cmd/shipperctl/health"
	"shipper.dev/shipper/cmd/shipperctl/render"
	"shipper.dev/shipper/cmd/shipperctl/rollout"
)

// NewCommand returns shipperctl, writing to out.
func NewCommand(out io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:           "shipperctl",
		Short:         "Set up, back up and tidy up clusters for Shipper, see and stop rollouts",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.SetOut(out)
	cmd.AddCommand(
		clusters.NewCommand(), backup.NewCommand(clock.RealClock{}), clusters.NewCleanCommand(),
		rollout.NewCommand(clock.RealClock{}), block.NewCommand(clock.RealClock{}), block.NewOverrideCommand(clock.RealClock{}),
		render.NewPlanCommand(), clusters.NewListCommand(), render.NewChartCommand(), health.NewCommand(clock.RealClock{}), newVersion(),
	)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return cli.WithCode(cli.Misused, explain(cmd, err))
	})
	printMisuse(cmd)
	advise(cmd)
	exemplify(cmd)
	return cmd
}

// explain adds where to look to an error about how a command was called.
func explain(cmd *cobra.Command, err error) error {
	if strings.Contains(err.Error(), " --help") {
		return err
	}
	return errors.New(err.Error() + "; see " + cmd.CommandPath() + " --help")
}

// suggest adds the nearest commands to an error about one that there is not. Cobra does so for the first level only.
func suggest(cmd *cobra.Command, args []string, err error) error {
	if !cmd.HasSubCommands() || len(args) == 0 {
		return err
	}
	cmd.SuggestionsMinimumDistance = max(cmd.SuggestionsMinimumDistance, 2)
	near := cmd.SuggestionsFor(args[0])
	if len(near) == 0 {
		return err
	}
	return fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
}

// printMisuse has a command and those below it tell wrong arguments from failures.
func printMisuse(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return cli.WithCode(cli.Misused, explain(cmd, suggest(cmd, args, err)))
			}
			return nil
		}
	}
	for _, below := range cmd.Commands() {
		printMisuse(below)
	}
}
