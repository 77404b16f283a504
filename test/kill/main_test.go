// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// The application clusters, each in a region of its own.
var clusters = map[string]string{"eu-west-1": "eu-west", "us-east-1": "us-east"}

// world is the fleet that all tests share, one after the other. Each has a namespace of its own in it. Of its Pod the webhook runs; the
// tests run the reconciler themselves.
var world struct {
	*env.Env

	gate       *gate
	reconciler *lives
}

func TestMain(m *testing.M) {
	os.Exit(env.Main(m, env.Options{
		Fleet:    fleet.Options{Applications: slices.Sorted(maps.Keys(clusters))},
		Binaries: env.Shipper(), SetUp: install,
	}))
}

// install sets the fleet up with shipperctl, and starts Shipper with its reconciler behind proxies.
func install(ctx context.Context, e *env.Env) error {
	world.Env, world.gate = e, &gate{dead: true}
	file := &strings.Builder{}
	fmt.Fprintln(file, "applicationClusters:")
	authorities := map[string][]byte{}
	for _, c := range e.Fleet.Applications {
		p, err := startProxy(c)
		if err != nil {
			return err
		}
		authorities[c.Name] = p.ca()
		fmt.Fprintf(file, "- name: %s\n  region: %s\n  apiMaster: %s\n", c.Name, clusters[c.Name], p.URL)
	}
	if err := setUp(ctx, file.String()); err != nil {
		return err
	}
	for name, ca := range authorities {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: shipper.SystemNamespace, Name: name}
		if err := e.Management.Get(ctx, key, secret); err != nil {
			return fmt.Errorf("reading the credentials of %s: %w", name, err)
		}
		secret.Data["ca.crt"] = ca
		if err := e.Management.Update(ctx, secret); err != nil {
			return fmt.Errorf("letting Shipper trust the proxy to %s: %w", name, err)
		}
	}
	return start(ctx)
}

// startProxy starts a proxy to a cluster, which ends with the tests.
func startProxy(c *fleet.Cluster) (*proxy, error) {
	p, err := newProxy(c.Name, c.Config, world.gate)
	if err == nil {
		world.AtEnd(func() error {
			p.CloseClientConnections()
			p.Close()
			return nil
		})
	}
	return p, err
}

// setUp runs shipperctl.
func setUp(ctx context.Context, clusters string) error {
	file := filepath.Join(world.Dir, "clusters.yaml")
	if err := os.WriteFile(file, []byte(clusters), 0o600); err != nil {
		return err
	}
	if err := pod.SetUpManagement(ctx, world.Fleet, world.Dir, world.PodOptions.WebhookPort); err != nil {
		return err
	}
	if err := pod.Shipperctl(ctx, world.Fleet, world.Dir, "clusters", "join", "-f", file); err != nil {
		return err
	}
	return pod.FailClosed(ctx, world.Fleet)
}

// start starts the webhook as in its Pod, and the reconciler behind a proxy.
func start(ctx context.Context) error {
	if err := world.StartPod(ctx); err != nil {
		return err
	}
	if err := world.Pod.Reconciler.Stop(); err != nil {
		return err
	}
	mgmt := world.Fleet.Management
	p, err := startProxy(mgmt)
	if err != nil {
		return err
	}
	direct, err := mgmt.ServiceAccountKubeconfig(ctx, shipper.SystemNamespace, shipper.ManagementServiceAccount)
	if err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(direct)
	if err != nil {
		return err
	}
	for _, c := range config.Clusters {
		c.Server, c.CertificateAuthorityData = p.URL, p.ca()
	}
	kubeconfig := filepath.Join(world.Dir, "reconciler.kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return err
	}
	world.reconciler = &lives{
		gate: world.gate, path: filepath.Join(world.Dir, "shipper-reconciler"), log: filepath.Join(world.Dir, "lives.log"),
		args: []string{
			"--outgoing-urls", "http://127.0.0.1:*",
			"--kubeconfig", kubeconfig, "--leader-elect=false", "--metrics-addr", "0", "--health-addr", "0",
			charts.Flag, "--chart-cache-dir", filepath.Join(world.Dir, "charts"),
		}}
	world.reconciler.live(context.WithoutCancel(ctx))
	world.AtEnd(func() error { world.reconciler.halt(); return nil })
	return nil
}
