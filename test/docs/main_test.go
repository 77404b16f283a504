// SPDX-License-Identifier: Apache-2.0

// Package docs runs the commands of the documents: README.md and docs/quick-start.md on a fresh fleet, then those of all
// other documents on that fleet. It applies all manifests. Commands that cannot run here are listed with the reason and the
// test that covers them.
package docs

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// patience bounds every wait. On an idle machine each takes less than a tenth of it.
const patience = 5 * time.Minute

// world is the fleet that the quick start made.
var world struct {
	dir   string // holds all files
	shell *shell // of the quick start
	fleet *fleet.Fleet
	// environment is that of the quick start's shell at its end, for other shells.
	environment []string
	// followed is locked for reading while a page is followed, and for writing by a page that must be alone.
	followed sync.RWMutex
	// management is the administrator's client, applications those of the application clusters.
	management   client.WithWatch
	applications map[string]client.WithWatch
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	_ = flag.Set("test.parallel", "12") // tests wait most of the time; the flag belongs to package testing
	os.Exit(testMain(m))
}

// testMain runs the tests in a folder of their own. Background processes end with the tests, even if the tests crash.
func testMain(m *testing.M) int {
	var err error
	if world.dir, err = os.MkdirTemp("", "shipper-docs-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(world.dir)
	leash, err := os.Create(filepath.Join(world.dir, "leash"))
	if err == nil {
		defer leash.Close()
		err = syscall.Flock(int(leash.Fd()), syscall.LOCK_EX)
	}
	environment := []string{
		"FLEET_LEASH=" + leash.Name(), "FLEET=" + filepath.Join(world.dir, "fleet"), "BIN=" + filepath.Join(world.dir, "bin"),
	}
	if os.Getenv(standing) != "" {
		environment = nil
	}
	if err == nil {
		world.shell, err = openShell(context.Background(), root, environment...)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer world.shell.end()
	code := m.Run()
	if !begun || os.Getenv(standing) != "" {
		return code
	}
	where, err := filepath.Abs(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	said, _, err := world.shell.run("cd "+quoted(where)+" && "+last, patience)
	if err != nil || !says(said, "Shipper is down.\nThe fleet is down.\n") {
		fmt.Fprintf(os.Stderr, "stopping the fleet: %v\n%s", err, said)
		return 1
	}
	return code
}

// connect creates clients for the fleet that the quick start started.
func connect(folder string) error {
	var err error
	if world.fleet, err = fleet.Open(filepath.Join(folder, "kubeconfig")); err != nil {
		return err
	}
	if world.management, err = pod.NewClient(world.fleet.Management.Config); err != nil {
		return err
	}
	world.applications = map[string]client.WithWatch{}
	for _, c := range world.fleet.Applications {
		if world.applications[c.Name], err = pod.NewClient(c.Config); err != nil {
			return err
		}
	}
	return nil
}
