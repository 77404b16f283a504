// SPDX-License-Identifier: Apache-2.0

// Package certmanager proves that the overlay cert-manager works with cert-manager: its controllers and its cainjector run
// in the test, on a real control plane, and the webhook runs as it would in its Pods.
package certmanager

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cert-manager/cert-manager/pkg/api"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// What all tests share.
var (
	management *fleet.Cluster
	admin      client.Client
	service    *pod.Service
	replicas   []*pod.Pod
	folders    []string // where the replicas write their logs
	repository *charts.Repository
)

func TestMain(m *testing.M) {
	const why = "cert-manager and the overlay for it change seldom; test/replicas rotates certificates in `make test`"
	crds, err := certManagerCRDs()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(env.Main(m, env.Options{
		Fleet: fleet.Options{CRDs: []string{"../../manifests/crd", crds}}, SetUp: setUp, Nightly: why,
	}))
}

// certManagerCRDs is the folder of the definitions in cert-manager's module.
func certManagerCRDs() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager").Output()
	if err != nil {
		return "", fmt.Errorf("finding cert-manager's module: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "deploy", "crds"), nil
}

func setUp(ctx context.Context, e *env.Env) error {
	management, repository = e.Fleet.Management, e.Charts
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, api.AddToScheme, shipper.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	var err error
	if admin, err = management.Client(scheme); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "run", "-exec", "cp -t '"+e.Dir+"'", "./cmd/shipper-webhook") // see pod.Build
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the webhook: %w: %s", err, out)
	}
	if err := applyOverlay(ctx); err != nil {
		return err
	}
	return setUpReplicas(ctx, e.Dir, e.PodOptions.Dir)
}

// applyOverlay applies the overlay with kubectl, as users do.
func applyOverlay(ctx context.Context) error {
	kubectl, err := fleet.Kubectl()
	if err != nil {
		return err
	}
	apply := exec.CommandContext(ctx, kubectl, "apply", "--server-side", "-k", "../../manifests/overlays/cert-manager",
		"--kubeconfig", management.Kubeconfig)
	if out, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("applying the overlay: %w: %s", err, out)
	}
	return nil
}

// setUpReplicas makes two replicas ready to start, and has the API server reach them by the Service of the overlay. There
// is no network of Pods here: the Service becomes one that stands for a name outside the cluster.
func setUpReplicas(ctx context.Context, bin, dir string) error {
	var ports []int
	for range 2 {
		port, err := pod.FreePort()
		if err != nil {
			return err
		}
		ports = append(ports, port)
		folder := filepath.Join(dir, fmt.Sprintf("replica-%d", port))
		folders = append(folders, folder)
		p, err := pod.New(ctx, pod.Options{
			Management: management, Bin: bin, Dir: folder, WebhookPort: port,
			WebhookFlags: []string{"--certs=cert-manager"},
		})
		if err != nil {
			return err
		}
		replicas = append(replicas, p)
	}
	var err error
	if service, err = pod.NewService(ports...); err != nil {
		return err
	}
	found := &corev1.Service{}
	if err := admin.Get(ctx, client.ObjectKey{Namespace: "shipper-system", Name: "shipper-webhook"}, found); err != nil {
		return err
	}
	found.Spec.Type, found.Spec.ExternalName = corev1.ServiceTypeExternalName, "localhost"
	if err := admin.Update(ctx, found); err != nil {
		return err
	}
	return eachWebhook(ctx, func(c *clientConfig) { c.Service.Port = new(int32(service.Port)) })
}
