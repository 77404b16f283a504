// SPDX-License-Identifier: Apache-2.0

// Package admission tests the webhook behind a real API server: it runs as in its Pod, and tests send requests as users.
package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/install"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// What all tests share: one management cluster with a running webhook.
var (
	management *fleet.Cluster
	gate       *webhook
	scheme     = runtime.NewScheme()
	admin      client.WithWatch
)

func TestMain(m *testing.M) {
	os.Exit(fleet.Main(m, fleet.Options{CRDs: []string{"../../manifests/crd"}}, func(f *fleet.Fleet) {
		management = f.Management
		if err := setup(f); err != nil {
			fmt.Fprintln(os.Stderr, "setting up:", err)
			_ = f.Stop()
			os.Exit(1)
		}
	}))
}

func setup(f *fleet.Fleet) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if err := shipper.AddToScheme(scheme); err != nil {
		return err
	}
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		return err
	}
	var err error
	config := rest.CopyConfig(management.Config)
	config.WarningHandler = rest.NoWarnings{}
	if admin, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	bin := filepath.Join(f.Dir, "bin")
	if err := pod.Build(ctx, bin, "shipper-webhook"); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	where := &url.URL{Scheme: "https", Host: fmt.Sprintf("localhost:%d", port)}
	install := &install.Management{
		Client: admin, Report: install.NewReport(io.Discard), Namespace: shipper.SystemNamespace,
		GlobalBlocksNamespace: shipper.GlobalBlocksNamespace, ServiceAccount: shipper.ManagementServiceAccount,
		WebhookURL: where, Patience: install.DefaultPatience,
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
	gate = &webhook{name: "shipper-webhook", bin: bin, kubeconfig: kubeconfig, port: port, dir: f.Dir}
	if err := gate.start(ctx); err != nil {
		return err
	}
	return install.SetFailurePolicy(ctx)
}
