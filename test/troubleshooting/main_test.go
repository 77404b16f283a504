// SPDX-License-Identifier: Apache-2.0

// Package troubleshooting walks through what goes wrong as docs/troubleshooting.md teaches it: with kubectl, on a real fleet,
// with the real binaries. It also holds docs/user-guide.md to its manifests.
package troubleshooting

import (
	"context"
	"errors"
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

// The application cluster and its region.
const cluster, region = "eu-west-1", "eu-west"

// world is the fleet all tests share. Each has a namespace of its own in it.
var world struct {
	fleet      *fleet.Fleet
	pod        *pod.Pod
	dir        string // of the pod
	charts     *charts.Repository
	kubectl    string
	management client.WithWatch
	cluster    client.Client
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "shipper-troubleshooting-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	built := make(chan error, 1)
	go func() { built <- pod.Build(ctx, dir) }()
	f, err := fleet.Start(ctx, fleet.Options{Applications: []string{cluster}, Dir: filepath.Join(dir, "fleet")})
	if err = errors.Join(err, <-built); f != nil {
		defer f.Stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	world.fleet, world.dir = f, dir
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

// install sets the fleet up with shipperctl and starts Shipper.
func install(ctx context.Context, dir string) error {
	var err error
	if world.kubectl, err = fleet.Kubectl(); err != nil {
		return err
	}
	if world.charts, err = charts.Start(); err != nil {
		return err
	}
	if world.management, err = pod.NewClient(world.fleet.Management.Config); err != nil {
		return err
	}
	if world.cluster, err = pod.NewClient(world.fleet.Applications[0].Config); err != nil {
		return err
	}
	port, err := pod.FreePort()
	if err != nil {
		return err
	}
	clusters := fmt.Sprintf("applicationClusters:\n- name: %s\n  region: %s\n", cluster, region)
	if err := pod.SetUp(ctx, world.fleet, dir, clusters, port); err != nil {
		return err
	}
	world.pod, err = pod.Start(ctx, pod.Options{Management: world.fleet.Management, Bin: dir, Dir: dir, WebhookPort: port})
	return err
}
