// SPDX-License-Identifier: Apache-2.0

// Command dist makes what people download: shipperctl for each operating system as an archive, with the license, checksums of
// the archives, and the manifest by which krew installs shipperctl as a plugin of kubectl.
//
//	go run ./hack/dist -version v0.1.0
//
// The same tree, with the same Go, gives the same bytes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// everywhere is what shipperctl is made for.
const everywhere = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// order is what is asked for.
type order struct {
	root      string // of the source tree
	out       string // folder
	version   string
	downloads string    // URL of the folder that the archives will be in
	platforms []string  // as os/architecture
	at        time.Time // when all files were made, so to say
	// build builds shipperctl into a folder.
	build func(ctx context.Context, os, arch, into string) error
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// run does what the flags say.
func run(ctx context.Context) error {
	o := order{}
	var platforms string
	var seconds int64
	flag.StringVar(&o.root, "root", ".", "`folder` with the source tree")
	flag.StringVar(&o.out, "out", "dist", "`folder` for the archives")
	flag.StringVar(&o.version, "version", "v0.0.0-dev", "`version` in the archives' names")
	flag.StringVar(&o.downloads, "downloads", "https://shipper.dev/shipper/releases",
		"`URL` below which each version has a folder with its archives")
	flag.StringVar(&platforms, "platforms", everywhere, "comma-separated `platforms`")
	flag.Int64Var(&seconds, "time", 0, "`seconds` since 1970 that all files say they are from")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected arguments: %s", strings.Join(flag.Args(), " "))
	}
	o.platforms, o.at = strings.Split(platforms, ","), time.Unix(seconds, 0).UTC()
	o.build = o.shipperctl
	return o.make(ctx)
}

// shipperctl builds shipperctl for a platform into a folder.
func (o order) shipperctl(ctx context.Context, system, arch, into string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(o.root, "hack/binaries.sh"), into, "shipperctl")
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building shipperctl for %s/%s: %w", system, arch, err)
	}
	return nil
}

// make makes everything.
func (o order) make(ctx context.Context) error {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	var archives []archive
	for _, platform := range o.platforms {
		system, arch, ok := strings.Cut(platform, "/")
		if !ok {
			return fmt.Errorf("platform %q is not os/architecture", platform)
		}
		fmt.Fprintln(os.Stderr, "building shipperctl for", platform)
		made, err := o.archive(ctx, system, arch)
		if err != nil {
			return err
		}
		archives = append(archives, made)
	}
	var checksums strings.Builder
	for _, a := range archives {
		fmt.Fprintf(&checksums, "%s  %s\n", a.sum, a.name)
	}
	if err := os.WriteFile(filepath.Join(o.out, "checksums.txt"), []byte(checksums.String()), 0o644); err != nil {
		return err
	}
	manifest, err := krew(o.version, o.downloads, archives)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, "shipper.yaml"), manifest, 0o644)
}
