// SPDX-License-Identifier: Apache-2.0

// Command shipper-webhook is the admission webhook for the objects of Shipper.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	stdlog "log"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"shipper.dev/shipper/chart/render"
)

func main() {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "shipper-webhook:", err)
		os.Exit(2)
	}
	log := zap.New(o.logging()...)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	stdlog.SetOutput(render.WithoutValueWarnings(os.Stderr))

	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if err := run(ctx, o); err != nil {
		log.Error(err, "Ended")
		os.Exit(1) //nolint:gocritic // there is nothing to undo: the context only listens for signals
	}
}
