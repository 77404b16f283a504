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

	"shipper.dev/shipper/test/charts"
	testenv "shipper.dev/shipper/test/env"
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
	// followed is locked for reading by each test that uses the fleet, and for writing by one that must be alone.
	followed sync.RWMutex
	// management is the administrator's client, applications those of the application clusters.
	management   client.WithWatch
	applications map[string]client.WithWatch
	// env is the fleet for tests that use package env. Its charts are those of test/charts.
	env *testenv.Env
}

// follower is a test that uses the fleet.
type follower struct {
	leave  func() // releases the lock of followed
	single bool   // no other test uses the fleet
}

// follows waits while a test is alone. A test calls it once: it would wait for a test that waits for it.
func follows(t *testing.T) *follower {
	world.followed.RLock()
	f := &follower{leave: world.followed.RUnlock}
	t.Cleanup(func() { f.leave() })
	return f
}

// alone waits until no other test uses the fleet, and excludes others until the test ends.
func (f *follower) alone() {
	if f.single {
		return
	}
	f.leave()
	world.followed.Lock()
	f.leave, f.single = world.followed.Unlock, true
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
	lock, err := os.Create(filepath.Join(world.dir, "lifetime.lock"))
	if err == nil {
		defer lock.Close()
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
	}
	environment := []string{
		"FLEET_LIFETIME_LOCK=" + lock.Name(), "FLEET=" + filepath.Join(world.dir, "fleet"), "BIN=" + filepath.Join(world.dir, "bin"),
		"GOFLAGS=" + os.Getenv("GOFLAGS") + " -buildvcs=false", // as hack/test-binaries.sh
	}
	if os.Getenv(standing) != "" {
		environment = nil
	}
	if err == nil {
		err = haveBinaries(filepath.Join(world.dir, "bin"))
	}
	if err == nil {
		world.shell, err = openShell(context.Background(), root, environment...)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer world.shell.end()
	repository, err := charts.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer repository.Close()
	world.env = &testenv.Env{Charts: repository}
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

// haveBinaries copies the binaries that were built before, for make not to link them again.
func haveBinaries(bin string) error {
	if before := pod.Built(); before != "" {
		return os.CopyFS(bin, os.DirFS(before))
	}
	return nil
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
	world.env.Fleet, world.env.Management, world.env.Clusters = world.fleet, world.management, world.applications
	return nil
}
