// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// The application clusters and the region each is in.
const (
	west, westRegion = "eu-west-1", "eu-west"
	east, eastRegion = "us-east-1", "us-east"
)

// world is the fleet all tests of the package share. Each test has a namespace of its own in it.
var world struct {
	fleet      *fleet.Fleet
	pod        *pod.Pod
	charts     *charts.Repository
	management client.WithWatch
	clusters   map[string]client.Client // application clusters by name
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "shipper-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	f, err := fleet.Start(ctx, fleet.Options{Applications: []string{west, east}, Dir: filepath.Join(dir, "fleet")})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer f.Stop()
	world.fleet = f
	err = install(ctx, dir)
	defer func() {
		if world.pod != nil {
			_ = world.pod.Stop()
		}
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer world.charts.Close()
	return m.Run()
}

// install builds the binaries, sets the fleet up with shipperctl and starts Shipper.
func install(ctx context.Context, dir string) error {
	var err error
	if world.charts, err = charts.Start(); err != nil {
		return err
	}
	if world.management, err = pod.NewClient(world.fleet.Management.Config); err != nil {
		return err
	}
	world.clusters = map[string]client.Client{}
	for _, c := range world.fleet.Applications {
		if world.clusters[c.Name], err = pod.NewClient(c.Config); err != nil {
			return err
		}
	}
	if err := pod.Build(ctx, dir); err != nil {
		return err
	}
	port, err := pod.FreePort()
	if err != nil {
		return err
	}
	clusters := fmt.Sprintf("applicationClusters:\n- name: %s\n  region: %s\n- name: %s\n  region: %s\n",
		west, westRegion, east, eastRegion)
	if err := pod.SetUp(ctx, world.fleet, dir, clusters, port); err != nil {
		return err
	}
	world.pod, err = pod.Start(ctx, pod.Options{Management: world.fleet.Management, Bin: dir, Dir: dir, WebhookPort: port})
	return err
}
