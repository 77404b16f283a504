// SPDX-License-Identifier: Apache-2.0

// Package troubleshooting walks through what goes wrong as docs/troubleshooting.md teaches it: with kubectl, on a real fleet,
// with the real binaries. It also holds docs/user-guide.md to its manifests.
package troubleshooting

import (
	"context"
	"fmt"
	"os"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
)

// The application cluster and its region.
const cluster, region = "eu-west-1", "eu-west"

// world is the fleet all tests share. Each has a namespace of its own in it.
var world struct {
	*env.Env

	kubectl string
	cluster client.Client
}

func TestMain(m *testing.M) {
	os.Exit(env.Main(m, env.Options{
		Fleet: fleet.Options{Applications: []string{cluster}}, Binaries: env.Shipper(), SetUp: install,
	}))
}

// install sets the fleet up with shipperctl and starts Shipper.
func install(ctx context.Context, e *env.Env) error {
	world.Env, world.cluster = e, e.Clusters[cluster]
	var err error
	if world.kubectl, err = fleet.Kubectl(); err != nil {
		return err
	}
	if err := e.Install(ctx, fmt.Sprintf("applicationClusters:\n- name: %s\n  region: %s\n", cluster, region)); err != nil {
		return err
	}
	return e.StartPod(ctx)
}
