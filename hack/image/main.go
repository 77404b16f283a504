// SPDX-License-Identifier: Apache-2.0

// Command image assembles Shipper's image as an OCI archive, for machines without a container engine. It does what the Dockerfile
// says, reads it for that, and refuses one that says more than it understands: the two cannot differ.
//
//	cd hack/image && go run . -out ../../bin/shipper-image.tar -name registry.example.com/shipper:v0.1.0
//
// The same tree, with the same Go and the same certificate authorities, gives the same bytes.
//
// ko cannot build this image: it puts one program into an image, on a base that it pulls, where this has two programs and no base.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// order is what is asked for.
type order struct {
	root      string    // of the source tree
	out       string    // file
	name      string    // of the image, with a tag
	platforms []string  // as os/architecture
	at        time.Time // when everything in the image was made, so to say
	// args are what the Dockerfile calls ARG.
	args map[string]string
	// authorities is the file that takes the place of the build stage's CA bundle; empty: that of this machine at the same path.
	authorities string
	// build builds the programs for a platform into a folder.
	build func(ctx context.Context, r *recipe, platform *v1.Platform, into string) error
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run does what the flags say.
func run(ctx context.Context) error {
	o := order{args: map[string]string{}}
	var platforms, version, revision string
	var seconds int64
	flag.StringVar(&o.root, "root", "../..", "`folder` with the source tree")
	flag.StringVar(&o.out, "out", "../../bin/shipper-image.tar", "`file` to write")
	flag.StringVar(&o.name, "name", "registry.example.com/shipper:dev", "`name` of the image, with its tag")
	flag.StringVar(&platforms, "platforms", "linux/amd64,linux/arm64", "comma-separated `platforms`")
	flag.StringVar(&o.authorities, "ca-certificates", "",
		"`file` with certificate authorities (default this machine's, where the Dockerfile has them)")
	flag.StringVar(&version, "version", "", "`version` in the image's labels")
	flag.StringVar(&revision, "revision", "", "`revision` in the image's labels")
	flag.Int64Var(&seconds, "time", 0, "`seconds` since 1970 that files and image say they are from")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected arguments: %s", strings.Join(flag.Args(), " "))
	}
	o.platforms, o.at = strings.Split(platforms, ","), time.Unix(seconds, 0).UTC()
	o.args["VERSION"], o.args["REVISION"] = version, revision
	o.build = o.programs
	digest, err := assemble(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("%s has %s@%s for %s\n", o.out, o.name, digest, platforms)
	return nil
}
