// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	testenv "shipper.dev/shipper/test/env"
)

// shipperBinaries are the programs that `make shipper-up` runs, the reconciler last.
var shipperBinaries = []string{"shipper-webhook", "shipper-reconciler"}

// shipperFolder returns the folder of the logs and caches of the Shipper that the quick start started.
func shipperFolder() string { return filepath.Join(filepath.Dir(world.fleet.Kubeconfig), "shipper") }

// running is a process of this machine.
type running struct {
	pid  int
	args []string
}

// processes returns the processes whose arguments satisfy a condition.
func processes(t *testing.T, are func(args []string) bool) []running {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Fatalf("listing the processes of this machine: %v", err)
	}
	var out []running
	for _, file := range files {
		line, err := os.ReadFile(file) // a process may have ended since
		args := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
		pid, numbered := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && numbered == nil && are(args) {
			out = append(out, running{pid, args})
		}
	}
	return out
}

// shipperProcess returns the process of a binary of the fleet's Shipper.
func shipperProcess(t *testing.T, name string) running {
	t.Helper()
	found := processes(t, func(args []string) bool {
		return filepath.Base(args[0]) == name && slices.Contains(args, filepath.Join(shipperFolder(), name+"-charts"))
	})
	if len(found) != 1 {
		t.Fatalf("there are %d processes of %s", len(found), name)
	}
	return found[0]
}

// metricsURLs returns where the binaries serve their metrics.
func metricsURLs(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, name := range shipperBinaries {
		args := shipperProcess(t, name).args
		at := slices.Index(args, "--metrics-addr")
		if at < 0 || at+1 >= len(args) {
			t.Fatalf("%s has no --metrics-addr: %v", name, args)
		}
		out = append(out, "http://"+args[at+1]+"/metrics")
	}
	return out
}

// restartShipper stops the reconciler, with which the webhook stops, and starts both again. It calls between while neither runs.
func (u *user) restartShipper(between func()) {
	u.Helper()
	u.Must("stopping the reconciler", syscall.Kill(shipperProcess(u.T, "shipper-reconciler").pid, syscall.SIGTERM))
	testenv.Eventually(u, "Shipper to end", func(context.Context) error {
		fleet := filepath.Dir(world.fleet.Kubeconfig)
		left := processes(u.T, func(args []string) bool { return slices.Contains(args, "-shipper") && slices.Contains(args, fleet) })
		if len(left) > 0 {
			return errors.New(strings.Join(left[0].args, " "))
		}
		return nil
	})
	between()
	where, err := filepath.Abs(root)
	u.Must("finding the source", err)
	typed(u.T, world.shell, "cd "+quoted(where)+" && make shipper-up")
}

// installed returns the path of a program that the quick start has put into the PATH.
func installed(t *testing.T, name string) string {
	t.Helper()
	for _, variable := range world.environment {
		folders, found := strings.CutPrefix(variable, "PATH=")
		if !found {
			continue
		}
		for _, folder := range filepath.SplitList(folders) {
			if path := filepath.Join(folder, name); exists(path) {
				return path
			}
		}
	}
	t.Fatalf("%s is not in the PATH", name)
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
