// SPDX-License-Identifier: Apache-2.0

// Command shipperctl sets up clusters for Shipper.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"shipper.dev/shipper/cmd/shipperctl/clusters"
)

func main() {
	log.SetLogger(logr.Discard()) // what libraries log says nothing to the person in front of the screen
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand(os.Stdout).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "shipperctl:", err)
		os.Exit(1)
	}
}

// newCommand returns the whole command line, writing to out.
func newCommand(out io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:           "shipperctl",
		Short:         "Set up clusters for Shipper",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.SetOut(out)
	cmd.AddCommand(clusters.NewCommand())
	return cmd
}
