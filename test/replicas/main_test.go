// SPDX-License-Identifier: Apache-2.0

// Package replicas proves what several webhooks promise together: that one can be replaced under load, that all of them
// know a RolloutBlock at once or say that they know nothing, and what is left when none of them is there.
package replicas

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

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/install"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// world is what all tests share, one after the other: a management cluster, a Service, and three replicas behind it.
var world struct {
	fleet      *fleet.Fleet
	management *fleet.Cluster
	admin      client.WithWatch
	config     *rest.Config // admin's
	charts     *charts.Repository
	dir        string
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
	ctrl.SetLogger(logr.Discard())
	os.Exit(fleet.Main(m, fleet.Options{CRDs: []string{"../../manifests/crd"}}, func(f *fleet.Fleet) {
		world.fleet, world.management, world.dir = f, f.Management, f.Dir
		if err := setUp(); err != nil {
			fmt.Fprintln(os.Stderr, "setting up:", err)
			_ = f.Stop()
			os.Exit(1)
		}
	}))
}

func setUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if err := pod.Build(ctx, world.dir, "shipper-webhook", "shipperctl"); err != nil {
		return err
	}
	world.config = rest.CopyConfig(world.management.Config)
	world.config.WarningHandler = rest.NoWarnings{}
	var err error
	if world.admin, err = newClient(world.config); err != nil {
		return err
	}
	if world.charts, err = charts.Start(); err != nil {
		return err
	}
	if world.service, err = pod.NewWire(); err != nil {
		return err
	}
	where, err := url.Parse(pod.WebhookURL(world.service.Port))
	if err != nil {
		return err
	}
	world.install = &install.Management{
		Client: world.admin, Report: install.NewReport(io.Discard), Namespace: shipper.SystemNamespace,
		GlobalBlocksNamespace: shipper.GlobalBlocksNamespace, ServiceAccount: shipper.ManagementServiceAccount,
		WebhookURL: where, Patience: install.DefaultPatience,
	}
	if err := world.install.Setup(ctx); err != nil {
		return err
	}
	world.kubeconfig, err = world.management.ServiceAccountKubeconfig(
		ctx, shipper.SystemNamespace, shipper.ManagementServiceAccount)
	if err != nil {
		return err
	}
	if err := startReplicas(ctx, 3); err != nil {
		return err
	}
	return world.install.SetFailurePolicy(ctx)
}

func newClient(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), shipper.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme))
	if err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
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
	kubeconfig := filepath.Join(world.dir, name+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return nil, err
	}
	r.Replica, err = pod.StartReplica(world.dir, filepath.Join(world.dir, "replicas"), name, kubeconfig,
		append([]string{"--shutdown-delay=1s", "--log-level=1"}, flags...)...)
	return r, err
}
