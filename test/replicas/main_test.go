// SPDX-License-Identifier: Apache-2.0

// Package replicas proves what several webhooks promise together: that one can be replaced under load, that all of them
// know a RolloutBlock at once or say that they know nothing, what is left when none of them is there, and that no request fails while their
// certificates rotate.
package replicas

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/install"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// world is what all tests share: a management cluster, and three replicas of the webhook behind one address.
var world struct {
	*env.Env

	kubeconfig string // of the service account
	service    *pod.Wire
	replicas   []*replica // oldest first
	started    int
	install    *install.Management
}

// replica is a webhook whose way to the API server can be cut.
type replica struct {
	*pod.Replica

	api *pod.Wire
}

func TestMain(m *testing.M) {
	os.Exit(env.Main(m, env.Options{
		Fleet:    fleet.Options{CRDs: []string{"../../manifests/crd"}},
		Binaries: []string{"shipper-webhook", "shipperctl"}, SetUp: setUp,
	}))
}

func setUp(ctx context.Context, e *env.Env) error {
	world.Env = e
	var err error
	if world.service, err = pod.NewWire(); err != nil {
		return err
	}
	if world.install, err = e.Setup(world.service.Port); err != nil {
		return err
	}
	if err := world.install.Setup(ctx); err != nil {
		return err
	}
	world.kubeconfig, err = e.Fleet.Management.ServiceAccountKubeconfig(
		ctx, shipper.SystemNamespace, shipper.ManagementServiceAccount)
	if err != nil {
		return err
	}
	if err := startReplicas(ctx, 3); err != nil {
		return err
	}
	return world.install.SetFailurePolicy(ctx)
}

// startReplicas starts n replicas and lets the Service lead to them once they are ready.
func startReplicas(ctx context.Context, n int) error {
	for range n {
		r, err := startReplica()
		if err != nil {
			return err
		}
		world.replicas = append(world.replicas, r)
	}
	for _, r := range world.replicas {
		if err := r.AwaitReady(ctx); err != nil {
			return err
		}
	}
	lead()
	return nil
}

// lead lets the Service lead to all replicas.
func lead() {
	var endpoints []string
	for _, r := range world.replicas {
		endpoints = append(endpoints, r.Address)
	}
	world.service.Lead(endpoints...)
}

// startReplica starts a replica that speaks to the API server through a wire of its own.
func startReplica(flags ...string) (*replica, error) {
	r := &replica{}
	var err error
	if r.api, err = pod.NewWire(); err != nil {
		return nil, err
	}
	config, err := clientcmd.LoadFromFile(world.kubeconfig)
	if err != nil {
		return nil, err
	}
	for _, c := range config.Clusters {
		server, err := url.Parse(c.Server)
		if err != nil {
			return nil, err
		}
		r.api.Lead(server.Host)
		c.Server = fmt.Sprintf("https://127.0.0.1:%d", r.api.Port)
	}
	world.started++
	name := fmt.Sprintf("replica-%d", world.started)
	kubeconfig := filepath.Join(world.Dir, name+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return nil, err
	}
	r.Replica, err = pod.StartReplica(world.Dir, filepath.Join(world.Dir, "replicas"), name, kubeconfig,
		append([]string{"--shutdown-delay=1s", "--log-level=1"}, flags...)...)
	return r, err
}
