// SPDX-License-Identifier: Apache-2.0

// Package admission tests the webhook behind a real API server: it runs as in its Pod, and tests send requests as users. Tests run in
// parallel, each in a namespace of its own, but for those that make global blocks or take the webhook or the policies away.
package admission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
)

// What all tests share: one management cluster with a running webhook.
var (
	management *fleet.Cluster
	gate       *webhook
	scheme     = runtime.NewScheme()
	admin      client.WithWatch
)

func TestMain(m *testing.M) {
	if err := fleet.Parallel(8); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(env.Main(m, env.Options{
		Fleet: fleet.Options{CRDs: []string{"../../manifests/crd"}}, Binaries: []string{"shipper-webhook"}, SetUp: setUp,
	}))
}

func setUp(ctx context.Context, e *env.Env) error {
	management = e.Fleet.Management
	err := errors.Join(shipper.AddToScheme(scheme), clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme))
	if err != nil {
		return err
	}
	config := rest.CopyConfig(management.Config)
	config.WarningHandler = rest.NoWarnings{}
	if admin, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	install, err := e.Setup(e.PodOptions.WebhookPort)
	if err != nil {
		return err
	}
	if err := install.Setup(ctx); err != nil {
		return err
	}
	if err := editorsEdit(ctx); err != nil {
		return err
	}
	kubeconfig, err := management.ServiceAccountKubeconfig(ctx, shipper.SystemNamespace, shipper.ManagementServiceAccount)
	if err != nil {
		return err
	}
	gate = &webhook{name: "shipper-webhook", bin: e.Dir, kubeconfig: kubeconfig, port: e.PodOptions.WebhookPort, dir: e.PodOptions.Dir}
	if err := gate.start(ctx); err != nil {
		return err
	}
	return install.SetFailurePolicy(ctx)
}
