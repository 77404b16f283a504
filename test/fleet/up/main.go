// SPDX-License-Identifier: Apache-2.0

// Up starts a fleet to experiment with and leaves it running: a management cluster and two application clusters in two
// regions. With -shipper it runs Shipper on that fleet, with -env it prints the environment for a shell, with -down it stops
// everything; with -foreground it stays until it is interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// The files of a running fleet, for its users.
const (
	clustersFile = "clusters.yaml"
	webhookPort  = "webhook-port" // port for a webhook on this machine
)

// clusters is the file that describes the fleet to shipperctl.
const clusters = `# For: shipperctl clusters join -f
managementClusters:
- name: mgmt
applicationClusters:
- name: eu-west-1
  region: eu-west
- name: us-east-1
  region: us-east
`

// options are the flags.
type options struct {
	dir, bin, charts               string
	down, foreground, shipper, env bool
}

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", ".fleet", "the `folder` of the fleet; it must not have other things in it")
	flag.StringVar(&o.bin, "bin", "bin", "the `folder` of Shipper's binaries")
	flag.StringVar(&o.charts, "charts", "", "with -shipper, also serve the charts of this `folder`")
	flag.BoolVar(&o.down, "down", false, "stop the fleet, and Shipper on it")
	flag.BoolVar(&o.shipper, "shipper", false, "run Shipper on the fleet, which `shipperctl clusters setup management` has set up")
	flag.BoolVar(&o.env, "env", false, "print the commands that make a shell use the fleet")
	flag.BoolVar(&o.foreground, "foreground", false, "stay until interrupted")
	flag.Parse()
	ctrllog.SetLogger(logr.Discard()) // logs of libraries do not help users
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, o); err != nil {
		cancel()
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// run acts on the flags.
func run(ctx context.Context, o options) error {
	path, err := filepath.Abs(o.dir)
	if err != nil {
		return fmt.Errorf("finding %s: %w", o.dir, err)
	}
	if o.bin, err = filepath.Abs(o.bin); err != nil {
		return fmt.Errorf("finding %s: %w", o.bin, err)
	}
	if o.charts != "" {
		if o.charts, err = filepath.Abs(o.charts); err != nil {
			return fmt.Errorf("finding %s: %w", o.charts, err)
		}
	}
	s := state(path)
	if o.foreground {
		if ctx, err = untilUnlocked(ctx); err != nil {
			return err
		}
	}
	switch {
	case o.down:
		return errors.Join(s.shipper().down("Shipper"), s.down("The fleet"))
	case o.env:
		return s.printEnvironment(o.bin)
	case o.shipper && o.foreground:
		return serveShipper(ctx, s, o.bin, o.charts)
	case o.shipper:
		return s.startShipper(ctx, o.bin, o.charts)
	case o.foreground:
		return serve(ctx, s)
	default:
		if err := s.refuseRemains(); err != nil {
			return err
		}
		if err := s.up(ctx, "-dir", path); err != nil {
			return err
		}
		if err := s.verify(ctx); err != nil {
			return err
		}
		fmt.Print(s.directions())
		return nil
	}
}

// serve starts the fleet and keeps it until ctx ends.
func serve(ctx context.Context, s state) error {
	lock, err := s.claim()
	if err != nil {
		return err
	}
	defer lock.Close()
	f, err := fleet.Start(ctx, fleet.Options{
		Applications: []string{"eu-west-1", "us-east-1"},
		Dir:          string(s),
		Progress:     os.Stderr,
	})
	if err != nil {
		return err
	}
	port, err := pod.FreePort()
	for _, file := range []struct{ name, text string }{
		{clustersFile, clusters}, {webhookPort, strconv.Itoa(port)}, {ready, ""},
	} {
		if err == nil {
			err = os.WriteFile(s.file(file.name), []byte(file.text), 0o644)
		}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing the files of the fleet: %w", err), f.Stop())
	}
	fmt.Print(s.directions())
	<-ctx.Done()
	return errors.Join(f.Stop(), s.clear())
}
