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

	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
)

// The application cluster and its region.
const cluster, region = "eu-west-1", "eu-west"

// world is the fleet that all tests share. Each has a namespace of its own in it.
var world struct {
	*env.Env

	cluster client.Client // the administrator's, of the application cluster
}

func TestMain(m *testing.M) {
	os.Exit(env.Main(m, env.Options{
		Fleet: fleet.Options{Applications: []string{cluster}}, Binaries: env.Shipper(), SetUp: install,
	}))
}

// install sets the fleet up with shipperctl, guards the application cluster, and starts Shipper.
func install(ctx context.Context, e *env.Env) error {
	world.Env, world.cluster = e, e.Clusters[cluster]
	if err := e.Install(ctx, fmt.Sprintf("applicationClusters:\n- name: %s\n  region: %s\n", cluster, region)); err != nil {
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
	return e.StartPod(ctx)
}

// shipperctl runs the command line beside its clusters.yaml, before Shipper runs or while it does.
func shipperctl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(world.Dir, "shipperctl"), args...)
	cmd.Dir = world.Dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+world.Fleet.Kubeconfig)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

var errAnswer = errors.New("it answers otherwise")

// holds waits until every policy of the guard refuses, or none does. API servers learn of policies by a watch, and look at
// them every second.
func holds(ctx context.Context, on bool) error {
	ctx, cancel := context.WithTimeout(ctx, env.Patience)
	defer cancel()
	for _, probe := range probes() {
		what := fmt.Sprintf("the guard to hold for %T: %t", probe, on)
		err := env.Until(ctx, what, func(ctx context.Context) error {
			err := client.NewDryRunClient(world.cluster).Create(ctx, probe.DeepCopyObject().(client.Object))
			if guarded(err) != on {
				return errors.Join(errAnswer, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
