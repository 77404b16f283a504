// SPDX-License-Identifier: Apache-2.0

package certmanager

import (
	"context"
	"fmt"

	"github.com/cert-manager/cert-manager/pkg/api"
	cmcontroller "github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	// Each registers itself.
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"shipper.dev/shipper/test/fleet"
)

// runCertManager runs what the Deployments cert-manager and cert-manager-cainjector run, as far as certificates of a CA
// of one's own need it, until ctx is done. Later errors are passed to failed.
func runCertManager(ctx context.Context, cluster *fleet.Cluster, failed func(error)) error {
	if err := runControllers(ctx, cluster, failed); err != nil {
		return err
	}
	return runInjector(ctx, cluster, failed)
}

func runControllers(ctx context.Context, cluster *fleet.Cluster, failed func(error)) error {
	factory, err := cmcontroller.NewContextFactory(ctx, cmcontroller.ContextOptions{
		Kubeconfig: cluster.Kubeconfig, KubernetesAPIQPS: 1000, KubernetesAPIBurst: 1000,
	})
	if err != nil {
		return err
	}
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	for name, construct := range cmcontroller.Known() {
		c, err := construct(factory)
		if err != nil {
			return fmt.Errorf("making cert-manager's controller %s: %w", name, err)
		}
		go func() {
			if err := c.Run(2, ctx); err != nil {
				failed(fmt.Errorf("cert-manager's controller %s: %w", name, err))
			}
		}()
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	return nil
}

// runInjector runs cainjector, which is limited to webhook configurations.
func runInjector(ctx context.Context, cluster *fleet.Cluster, failed func(error)) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, api.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	config := rest.CopyConfig(cluster.Config)
	config.UserAgent = "cert-manager-cainjector/test"
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	if err != nil {
		return err
	}
	err = cainjector.RegisterAllInjectors(ctx, mgr, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName: true, cainjector.ValidatingWebhookConfigurationName: true,
		},
	})
	if err != nil {
		return err
	}
	go func() {
		if err := mgr.Start(ctx); err != nil {
			failed(fmt.Errorf("cert-manager's cainjector: %w", err))
		}
	}()
	return nil
}
