// SPDX-License-Identifier: Apache-2.0

// Package troubleshooting walks through what goes wrong as docs/troubleshooting.md teaches it: with kubectl, on a real fleet,
// with the real binaries. It also holds docs/user-guide.md to its manifests.
package troubleshooting

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
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
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
	port       int    // of the webhook
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
	go func() { built <- build(ctx, dir) }()
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

// build builds the binaries.
func build(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", dir+"/", "../../cmd/shipper-webhook", "../../cmd/shipper-reconciler",
		"../../cmd/shipperctl")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the binaries: %w\n%s", err, out)
	}
	return nil
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
	if world.management, err = clientFor(world.fleet.Management.Config); err != nil {
		return err
	}
	if world.cluster, err = clientFor(world.fleet.Applications[0].Config); err != nil {
		return err
	}
	if world.port, err = pod.FreePort(); err != nil {
		return err
	}
	file := filepath.Join(dir, "clusters.yaml")
	clusters := fmt.Sprintf("applicationClusters:\n- name: %s\n  region: %s\n", cluster, region)
	if err := os.WriteFile(file, []byte(clusters), 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"clusters", "setup", "management", "--webhook-url", pod.WebhookURL(world.port)},
		{"clusters", "join", "-f", file},
	} {
		cmd := exec.CommandContext(ctx, filepath.Join(dir, "shipperctl"), args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+world.fleet.Kubeconfig)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("shipperctl %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	if err := world.fleet.Management.RestartControllers(); err != nil { // so that the garbage collector knows our kinds
		return err
	}
	world.pod, err = pod.Start(ctx, pod.Options{Management: world.fleet.Management, Bin: dir, Dir: dir, WebhookPort: world.port})
	return err
}

func clientFor(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), shipper.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}
