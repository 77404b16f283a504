// SPDX-License-Identifier: Apache-2.0

// Package check is `shipperctl check`: it lists Checks, and measures one as Shipper would, with the rights of its user.
package check

import (
	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

type options struct {
	cli.Flags
	clock clock.PassiveClock
	// shared is the namespace with the Checks that all share.
	shared string
	format cli.Format
}

// NewCommand returns `check` with its sub-commands, which ask c for the time.
func NewCommand(c clock.PassiveClock) *cobra.Command {
	o := &options{clock: c}
	cmd := cli.Group("check", "List Checks, and try one", newList(o), newTry(o))
	flags := cmd.PersistentFlags()
	o.RegisterDaily(flags)
	flags.StringVar(&o.shared, "shared-checks-namespace", check.SharedNamespace,
		"namespace with the Checks that all namespaces share, as Shipper has it")
	o.format.Register(flags)
	return cmd
}
