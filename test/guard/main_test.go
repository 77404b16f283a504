// SPDX-License-Identifier: Apache-2.0

// Package guard proves the application clusters' gate on real control planes: who may change what of Shipper's, that Shipper
// and Kubernetes go on as before, and that docs/guard.md is true.
package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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

// world is the fleet that all tests share, one after the other. Each has a namespace of its own in it.
var world struct {
	fleet      *fleet.Fleet
	pod        *pod.Pod
	dir        string // of the binaries and clusters.yaml
	charts     *charts.Repository
	management client.Client
	cluster    client.Client // the administrator's, of the application cluster
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "shipper-guard-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
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
	err = install(ctx)
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

// install sets the fleet up, guards it, and starts Shipper: nothing is rolled out without the guard.
func install(ctx context.Context) error {
	var err error
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
	if err := pod.SetUp(ctx, world.fleet, world.dir, clusters, port); err != nil {
		return err
	}
	if err := world.cluster.Create(ctx, aProductionService("default")); err != nil {
		return err
	}
	if out, err := shipperctl(ctx, "clusters", "join", "--guard"); err != nil {
		return fmt.Errorf("guarding: %w\n%s", err, out)
	}
	if err := holds(ctx, true); err != nil {
		return err
	}
	world.pod, err = pod.Start(ctx,
		pod.Options{Management: world.fleet.Management, Bin: world.dir, Dir: world.dir, WebhookPort: port})
	return err
}

// shipperctl runs the command line beside its clusters.yaml, before Shipper runs or while it does.
func shipperctl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(world.dir, "shipperctl"), args...)
	cmd.Dir = world.dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+world.fleet.Kubeconfig)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// holds waits until every policy of the guard refuses, or none does. API servers learn of policies by a watch, and look at
// them every second.
func holds(ctx context.Context, on bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, probe := range probes() {
		for {
			err := client.NewDryRunClient(world.cluster).Create(ctx, probe.DeepCopyObject().(client.Object))
			if ctx.Err() != nil {
				return fmt.Errorf("the guard holds for %T: want %t, but the answer is %w", probe, on, err)
			}
			if guarded(err) == on {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}
