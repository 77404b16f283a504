// SPDX-License-Identifier: Apache-2.0

// Command shipperctl sets up clusters for Shipper, backs management clusters up, takes clusters off Releases, and shows, moves and
// stops rollouts.
package main

import (
	"context"
	"fmt"
	stdlog "log"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/root"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

func main() {
	log.SetLogger(logr.Discard()) // what libraries log says nothing to the person in front of the screen
	klog.SetLogger(logr.Discard())
	stdlog.SetOutput(render.WithoutValueWarnings(os.Stderr))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends it at once, whatever it is waiting for
	cmd := root.NewCommand(screen.Onto(os.Stdout))
	cmd.SetIn(screen.Interruptible(ctx, os.Stdin))
	cmd.SetArgs(root.AdaptToName(cmd, os.Args))
	err := cmd.ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, screen.Printable(cmd.DisplayName()+": "+err.Error()))
		os.Exit(cli.ExitCode(err))
	}
}
