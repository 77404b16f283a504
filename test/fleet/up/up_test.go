// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"shipper.dev/shipper/test/pod"
)

// TestMain lets this binary be the process in the background, too, as the program is.
func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	if len(os.Args) > 1 && os.Args[1] == "-dir" || len(os.Args) > 1 && os.Args[1] == "-shipper" {
		main()
		return
	}
	os.Exit(m.Run())
}

// player runs the program as users do.
type player struct {
	*testing.T

	dir, bin string
}

// runs runs this program with flags, and returns its output.
func (p *player) runs(flags ...string) (string, error) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], append([]string{"-dir", p.dir, "-bin", p.bin}, flags...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func (p *player) succeeds(want string, flags ...string) {
	p.Helper()
	if out, err := p.runs(flags...); err != nil || !strings.Contains(out, want) {
		p.Fatalf("%v: %v\n%s\nand should contain\n%s", flags, err, out, want)
	}
}

func (p *player) fails(want string, flags ...string) {
	p.Helper()
	if out, err := p.runs(flags...); err == nil || !strings.Contains(out, want) {
		p.Fatalf("%v: %v\n%s\nand should contain\n%s", flags, err, out, want)
	}
}

// kills kills the one process whose command line has all parts, and waits until it is gone.
func (p *player) kills(parts ...string) {
	p.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		p.Fatal(err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		has := func(part string) bool { return strings.Contains(string(line), part) }
		if err != nil || !has(p.dir) || !all(parts, has) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			p.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			p.Fatal(err)
		}
		return
	}
	p.Fatalf("no process of %s has %v", p.dir, parts)
}

func all(parts []string, has func(string) bool) bool {
	for _, part := range parts {
		if !has(part) {
			return false
		}
	}
	return true
}

// TestUpVerifiesWhatItReports starts a fleet and Shipper on it, and kills parts of both.
func TestUpVerifiesWhatItReports(t *testing.T) {
	p := &player{T: t, dir: filepath.Join(t.TempDir(), "fleet"), bin: t.TempDir()}
	t.Cleanup(func() {
		down := exec.Command(os.Args[0], "-dir", p.dir, "-down")
		if out, err := down.CombinedOutput(); err != nil {
			t.Errorf("stopping the fleet: %v\n%s", err, out)
		}
	})
	if err := pod.Build(t.Context(), p.bin); err != nil {
		t.Fatal(err)
	}
	p.fails("no fleet is up: run `make fleet-up` first", "-shipper")
	p.succeeds("The fleet is up: contexts mgmt, eu-west-1 and us-east-1.")
	p.succeeds("The fleet is up")

	port, err := os.ReadFile(filepath.Join(p.dir, webhookPort))
	if err != nil {
		t.Fatal(err)
	}
	p.setsUp("https://localhost:1")
	p.fails("webhook and reconciler were started, but are not up: the API server admits, without an answer of "+
		"the webhook: Application", "-shipper")
	p.setsUp("https://localhost:" + string(port))
	p.succeeds("Shipper is up: webhook and reconciler.", "-shipper")
	p.kills("shipper-webhook")
	p.waitsForTheEnd(state(p.dir).shipper())
	p.succeeds("Shipper is up: webhook and reconciler.", "-shipper")

	p.kills("kube-apiserver", "eu-west-1")
	p.fails("the API server of eu-west-1 at https://127.0.0.1:")
	p.fails("is not up: the API server of eu-west-1", "-shipper")
	pid, err := state(p.dir).holder()
	if err != nil || pid == 0 {
		t.Fatalf("process %d has the fleet: %v", pid, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.waitsForTheEnd(state(p.dir))
	p.fails("has the files of a fleet whose process has ended")
}

// setsUp sets the management cluster up for a webhook.
func (p *player) setsUp(webhook string) {
	p.Helper()
	cmd := exec.CommandContext(p.Context(), filepath.Join(p.bin, "shipperctl"), "clusters", "setup", "management", "--webhook-url", webhook)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+state(p.dir).file("kubeconfig"))
	if out, err := cmd.CombinedOutput(); err != nil {
		p.Fatalf("setting up: %v\n%s", err, out)
	}
}

// waitsForTheEnd waits until no process holds the lock of a folder.
func (p *player) waitsForTheEnd(s state) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if pid, err := s.holder(); err != nil || pid == 0 {
			return
		}
		select {
		case <-ctx.Done():
			p.Fatalf("%s is still in use", s)
		case <-tick.C:
		}
	}
}

func TestUpRefusesAFolderWithOtherFiles(t *testing.T) {
	p := &player{T: t, dir: t.TempDir(), bin: t.TempDir()}
	if err := os.WriteFile(filepath.Join(p.dir, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.fails("has files in it and is not the folder of a fleet")
}
