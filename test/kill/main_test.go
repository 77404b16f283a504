// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// The application clusters, each in a region of its own.
var clusters = map[string]string{"eu-west-1": "eu-west", "us-east-1": "us-east"}

// world is the fleet that all tests share, one after the other. Each has a namespace of its own in it.
var world struct {
	fleet      *fleet.Fleet
	pod        *pod.Pod // its webhook; the tests run the reconciler themselves
	charts     *charts.Repository
	management client.WithWatch
	clients    map[string]client.WithWatch // application clusters by name
	gate       *gate
	proxies    []*proxy
	reconciler *lives
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "shipper-kill-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	err = install(ctx, dir)
	defer uninstall()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// uninstall ends what install has started.
func uninstall() {
	if world.reconciler != nil {
		world.reconciler.halt()
	}
	if world.pod != nil {
		_ = world.pod.Stop()
	}
	for _, p := range world.proxies {
		p.CloseClientConnections()
		p.Close()
	}
	if world.charts != nil {
		world.charts.Close()
	}
	if world.fleet != nil {
		_ = world.fleet.Stop()
	}
}

// install starts a fleet, sets it up with shipperctl, and starts Shipper with its reconciler behind proxies.
func install(ctx context.Context, dir string) error {
	if err := pod.Build(ctx, dir); err != nil {
		return err
	}
	var names []string
	for name := range clusters {
		names = append(names, name)
	}
	var err error
	if world.fleet, err = fleet.Start(ctx, fleet.Options{Applications: names, Dir: filepath.Join(dir, "fleet")}); err != nil {
		return err
	}
	if world.charts, err = charts.Start(); err != nil {
		return err
	}
	if world.management, err = clientFor(world.fleet.Management.Config); err != nil {
		return err
	}
	world.gate = &gate{dead: true}
	world.clients = map[string]client.WithWatch{}
	file := &strings.Builder{}
	fmt.Fprintln(file, "applicationClusters:")
	authorities := map[string][]byte{}
	for _, c := range world.fleet.Applications {
		if world.clients[c.Name], err = clientFor(c.Config); err != nil {
			return err
		}
		p, err := newProxy(c.Name, c.Config, world.gate)
		if err != nil {
			return err
		}
		world.proxies = append(world.proxies, p)
		authorities[c.Name] = p.ca()
		fmt.Fprintf(file, "- name: %s\n  region: %s\n  apiMaster: %s\n", c.Name, clusters[c.Name], p.URL)
	}
	port, err := pod.FreePort()
	if err != nil {
		return err
	}
	if err := setUp(ctx, dir, file.String(), port); err != nil {
		return err
	}
	for name, ca := range authorities {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: shipper.SystemNamespace, Name: name}
		if err := world.management.Get(ctx, key, secret); err != nil {
			return fmt.Errorf("reading the credentials of %s: %w", name, err)
		}
		secret.Data["ca.crt"] = ca
		if err := world.management.Update(ctx, secret); err != nil {
			return fmt.Errorf("letting Shipper trust the proxy to %s: %w", name, err)
		}
	}
	return start(ctx, dir, port)
}

// setUp runs shipperctl.
func setUp(ctx context.Context, dir, clusters string, port int) error {
	file := filepath.Join(dir, "clusters.yaml")
	if err := os.WriteFile(file, []byte(clusters), 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"clusters", "setup", "management", "--webhook-url", pod.WebhookURL(port)},
		{"clusters", "join", "-f", file},
	} {
		cmd := exec.CommandContext(ctx, filepath.Join(dir, "shipperctl"), args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+world.fleet.Kubeconfig)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("shipperctl %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	if err := pod.FailClosed(ctx, world.fleet); err != nil {
		return err
	}
	return world.fleet.Management.RestartControllers() // so that the garbage collector discovers our kinds
}

// start starts the webhook as in its Pod, and the reconciler behind a proxy.
func start(ctx context.Context, dir string, port int) error {
	mgmt := world.fleet.Management
	var err error
	world.pod, err = pod.Start(ctx, pod.Options{Management: mgmt, Bin: dir, Dir: dir, WebhookPort: port})
	if err != nil {
		return err
	}
	if err := world.pod.Reconciler.Stop(); err != nil {
		return err
	}
	p, err := newProxy(mgmt.Name, mgmt.Config, world.gate)
	if err != nil {
		return err
	}
	world.proxies = append(world.proxies, p)
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
	kubeconfig := filepath.Join(dir, "reconciler.kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return err
	}
	world.reconciler = &lives{gate: world.gate, path: filepath.Join(dir, "shipper-reconciler"), log: filepath.Join(dir, "lives.log"),
		args: []string{
			"--kubeconfig", kubeconfig, "--leader-elect=false", "--metrics-addr", "0", "--health-addr", "0",
			charts.Flag, "--chart-cache-dir", filepath.Join(dir, "charts"),
		}}
	world.reconciler.live(context.WithoutCancel(ctx))
	return nil
}

func clientFor(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), shipper.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}
