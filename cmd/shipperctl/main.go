// SPDX-License-Identifier: Apache-2.0

// Command shipperctl sets up clusters for Shipper.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"shipper.dev/shipper/cmd/shipperctl/clusters"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	root := &cobra.Command{
		Use:           "shipperctl",
		Short:         "Set up clusters for Shipper",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetOut(os.Stdout)
	root.AddCommand(clusters.NewCommand())
	err := root.ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "shipperctl:", err)
		os.Exit(1)
	}
}
