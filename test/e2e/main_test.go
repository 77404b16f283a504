// SPDX-License-Identifier: Apache-2.0

package e2e

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
	management client.Client
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
	if world.management, err = clientFor(world.fleet.Management.Config); err != nil {
		return err
	}
	world.clusters = map[string]client.Client{}
	for _, c := range world.fleet.Applications {
		if world.clusters[c.Name], err = clientFor(c.Config); err != nil {
			return err
		}
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", dir+"/", "../../cmd/shipper-webhook", "../../cmd/shipper-reconciler",
		"../../cmd/shipperctl")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the binaries: %w\n%s", err, out)
	}
	port, err := pod.FreePort()
	if err != nil {
		return err
	}
	clusters := fmt.Sprintf("applicationClusters:\n- name: %s\n  region: %s\n- name: %s\n  region: %s\n",
		west, westRegion, east, eastRegion)
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
	if err := world.fleet.Management.RestartControllers(); err != nil { // so that the garbage collector knows our kinds
		return err
	}
	world.pod, err = pod.Start(ctx, pod.Options{Management: world.fleet.Management, Bin: dir, Dir: dir, WebhookPort: port})
	return err
}

func clientFor(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), shipper.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}
