// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/pod"
	"shipper.dev/shipper/test/program"
)

// upProgram is the program test/fleet/up, as users run it.
type upProgram struct {
	*testing.T

	path, dir, bin string
}

// newUp builds the program.
func newUp(t *testing.T, dir string) *upProgram {
	t.Helper()
	p := &upProgram{T: t, path: filepath.Join(t.TempDir(), "up"), dir: dir, bin: t.TempDir()}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", p.path, "./up").CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	return p
}

// runs runs this program with flags, and returns its output.
func (p *upProgram) runs(flags ...string) (string, error) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, append([]string{"-dir", p.dir, "-bin", p.bin}, flags...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func (p *upProgram) succeeds(want string, flags ...string) {
	p.Helper()
	if out, err := p.runs(flags...); err != nil || !strings.Contains(out, want) {
		p.Fatalf("%v: %v\n%s\nand should contain\n%s", flags, err, out, want)
	}
}

func (p *upProgram) fails(want string, flags ...string) {
	p.Helper()
	if out, err := p.runs(flags...); err == nil || !strings.Contains(out, want) {
		p.Fatalf("%v: %v\n%s\nand should contain\n%s", flags, err, out, want)
	}
}

// kills kills the one process whose command line has all parts, and waits until it is gone.
func (p *upProgram) kills(parts ...string) {
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
	p := newUp(t, filepath.Join(t.TempDir(), "fleet"))
	t.Cleanup(func() {
		down := exec.Command(p.path, "-dir", p.dir, "-down")
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

	port, err := os.ReadFile(filepath.Join(p.dir, "webhook-port"))
	if err != nil {
		t.Fatal(err)
	}
	p.setsUp("https://localhost:1")
	p.fails("webhook and reconciler were started, but are not up: the API server admits, without an answer of "+
		"the webhook: Application", "-shipper")
	p.setsUp("https://localhost:" + string(port))
	p.succeeds("Shipper is up: webhook and reconciler.", "-shipper")
	p.kills("shipper-webhook")
	p.waitsForTheEnd("shipper")
	p.succeeds("Shipper is up: webhook and reconciler.", "-shipper")

	p.kills("kube-apiserver", "eu-west-1")
	p.fails("the API server of eu-west-1 at https://127.0.0.1:")
	p.fails("is not up: the API server of eu-west-1", "-shipper")
	text, err := os.ReadFile(filepath.Join(p.dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.waitsForTheEnd("")
	p.fails("has the files of a fleet whose process has ended")
}

// setsUp sets the management cluster up for a webhook.
func (p *upProgram) setsUp(webhook string) {
	p.Helper()
	cmd := exec.CommandContext(p.Context(), filepath.Join(p.bin, "shipperctl"), "clusters", "setup", "management", "--webhook-url", webhook)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(p.dir, "kubeconfig"))
	if out, err := cmd.CombinedOutput(); err != nil {
		p.Fatalf("setting up: %v\n%s", err, out)
	}
}

// waitsForTheEnd waits until no process has the fleet's folder, or a folder in it.
func (p *upProgram) waitsForTheEnd(folder string) {
	p.Helper()
	env.Eventually(p, "the end of the process in the background", func(context.Context) error {
		lock, err := program.TryLock(filepath.Join(p.dir, folder, "lock"))
		if err != nil {
			return err
		}
		if lock == nil {
			return errors.New("the folder is still in use")
		}
		return lock.Close()
	})
}

func TestUpRefusesAFolderWithOtherFiles(t *testing.T) {
	p := newUp(t, t.TempDir())
	if err := os.WriteFile(filepath.Join(p.dir, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.fails("has files in it and is not the folder of a fleet")
}
