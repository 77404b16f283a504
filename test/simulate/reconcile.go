// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/reconciler"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/test/charts"
)

// begin is what a reconciler has to know.
type begin struct {
	// Host and CA are the management cluster.
	Host string
	CA   []byte
	// Metrics and Profiles are addresses that it serves them at.
	Metrics, Profiles string
}

// reconcile is the reconciler as its command makes it, but for the election of a leader, as there is one replica, and with a
// page of profiles. file has a begin.
func reconcile(ctx context.Context, file string, workers int) error {
	var b begin
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &b)
	}
	if err != nil {
		return fmt.Errorf("reading what to reconcile: %w", err)
	}
	return b.run(ctx, filepath.Dir(file), workers)
}

// run reconciles until ctx is done.
func (b begin) run(ctx context.Context, dir string, workers int) error {
	scheme, err := reconciler.NewScheme()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(&rest.Config{
		Host: b.Host, TLSClientConfig: rest.TLSClientConfig{CAData: b.CA}, BearerToken: "any", QPS: -1, UserAgent: fleet.UserAgent,
	}, manager.Options{
		Scheme: scheme, Cache: reconciler.CacheOptions(shipper.SystemNamespace), NewClient: reconciler.NewClient,
		Metrics: metricsserver.Options{BindAddress: b.Metrics}, PprofBindAddress: b.Profiles,
	})
	if err != nil {
		return fmt.Errorf("building manager: %w", err)
	}
	policy, err := outward.ParsePolicy(charts.URLs)
	if err != nil {
		return err
	}
	err = reconciler.Setup(ctx, mgr, reconciler.Options{
		Namespace: shipper.SystemNamespace, GlobalBlocksNamespace: shipper.GlobalBlocksNamespace,
		Charts: repository.NewCatalog(ctx, repository.Options{CacheDir: filepath.Join(dir, "charts"), Repositories: policy}),
		Clock:  clock.RealClock{}, Workers: workers, Registry: metrics.Registry,
	})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
