// SPDX-License-Identifier: Apache-2.0

// Up starts a fleet to play with and leaves it up: a management cluster and two application clusters in two regions.
// With -down it stops that fleet; with -foreground it stays until it is interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"shipper.dev/shipper/test/fleet"
)

// clusters is what shipperctl is told about the fleet.
const clusters = `# For: shipperctl clusters join -f
managementClusters:
- name: mgmt
applicationClusters:
- name: eu-west-1
  region: eu-west
- name: us-east-1
  region: us-east
`

func main() {
	dir := flag.String("dir", ".fleet", "the `folder` of the fleet; it must not have other things in it")
	down := flag.Bool("down", false, "stop the fleet")
	foreground := flag.Bool("foreground", false, "stay until interrupted")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, *dir, *down, *foreground); err != nil {
		cancel()
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// run does what the flags say.
func run(ctx context.Context, dir string, down, foreground bool) error {
	path, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("finding %s: %w", dir, err)
	}
	s := state(path)
	switch {
	case down:
		return s.down()
	case foreground:
		return serve(ctx, s)
	default:
		return s.up(ctx)
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
	if err := os.WriteFile(s.file("clusters.yaml"), []byte(clusters), 0o644); err != nil {
		return errors.Join(fmt.Errorf("writing clusters.yaml: %w", err), f.Stop())
	}
	if err := os.WriteFile(s.file(ready), nil, 0o644); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", ready, err), f.Stop())
	}
	fmt.Print(s.directions())
	<-ctx.Done()
	return errors.Join(f.Stop(), s.clear())
}
