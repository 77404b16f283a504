// SPDX-License-Identifier: Apache-2.0

// Command download downloads released programs of Kubernetes, etcd, kwok and Prometheus, so that they need not be built:
//
//	go run ./hack/download -out folder etcd@v3.7.0 kube-apiserver@v1.37.1
//
// It prints the names of the programs that are in the folder afterwards, and on stderr why the others are not. A program gets its name
// in the folder only when the SHA-256 digest of the downloaded file is the one that its release publishes. It exits with 1 if the
// folder cannot be written or, with -required, if a program is missing.
//
// A digest comes from the same host as its file. It protects against a file that is incomplete, was changed on its way or in a
// cache, or belongs to another release; it does not protect against a host, or a mirror, that publishes both file and digest of its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	// answerTimeout bounds the requests for the digests, together.
	answerTimeout = 5 * time.Second
	// stallTimeout is how long a download may go without a byte.
	stallTimeout = 15 * time.Second
	// downloadTimeout bounds one download. Programs are built in that time where none can be had.
	downloadTimeout = 10 * time.Minute
	// reportInterval is that of the reports of progress.
	reportInterval = 5 * time.Second
	// retryInterval is how long a host that did not answer is not asked again.
	retryInterval = 10 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "download:", err)
		os.Exit(1)
	}
}

// run acts on the arguments.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("download", flag.ExitOnError)
	out := flags.String("out", "", "`folder` for the programs")
	mirror := flags.String("mirror", "", "`URL` to prepend to host and path of each address, as in https://mirror/dl.k8s.io/release/…")
	silent := flags.String("silent", "", "`folder` that remembers the hosts that did not answer; they are not asked again for ten minutes")
	required := flags.Bool("required", false, "fail if a program cannot be downloaded, and ask all hosts")
	platform := flags.String("platform", runtime.GOOS+"/"+runtime.GOARCH, "operating system/`architecture`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() == 0 {
		return errors.New("name -out and programs, as in etcd@v3.7.0")
	}
	if err := checkMirror(*mirror); err != nil {
		return err
	}
	files := make([]file, 0, flags.NArg())
	for _, arg := range flags.Args() {
		name, version, _ := strings.Cut(arg, "@")
		f, err := release(name, version, *platform)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	d := newDownloader(*out, *mirror, os.Stderr)
	d.silent, d.required = *silent, *required
	obtained, err := d.programs(ctx, files)
	for _, name := range obtained {
		fmt.Println(name)
	}
	return err
}

// checkMirror refuses what is no address of a mirror. The error does not quote it, which may contain a password.
func checkMirror(mirror string) error {
	if mirror == "" {
		return nil
	}
	if u, err := url.Parse(mirror); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return errors.New("the mirror has to be an address like https://mirror.example/releases")
	}
	return nil
}
