// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/cmd/start"
	"shipper.dev/shipper/reconciler"
	"shipper.dev/shipper/reconciler/process"
)

// run reconciles until ctx is done. It ends with an error when another reconciler became the leader.
func run(ctx context.Context, o *options) error {
	what, err := o.process()
	if err != nil {
		return err
	}
	mgr, err := process.New(ctx, what)
	if err != nil {
		return err
	}
	if err := errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("caches", func(r *http.Request) error {
			// A complete cache answers at once.
			ctx, cancel := context.WithTimeout(r.Context(), time.Second)
			defer cancel()
			if !mgr.GetCache().WaitForCacheSync(ctx) {
				return errors.New("caches are not filled yet")
			}
			return nil
		}),
	); err != nil {
		return fmt.Errorf("adding health checks: %w", err)
	}
	return start.Manager(ctx, mgr)
}

// process is what the flags say of the process.
func (o *options) process() (process.Options, error) {
	config, err := o.restConfig()
	return process.Options{
		Config: config, LeaderElect: o.leaderElect, Identity: o.identity,
		HealthAddr: o.healthAddr, MetricsAddr: o.metricsAddr, PprofAddr: o.pprofAddr(),
		Charts: repository.Options{CacheDir: o.chartCacheDir, Repositories: o.repositories},
		Reconciler: reconciler.Options{
			Namespace: o.namespace, GlobalBlocksNamespace: o.blocksNamespace, SharedChecksNamespace: o.sharedChecks,
			UnhealthyAfter: o.unhealthyAfter, OutgoingURLs: o.outgoing, Placeable: o.placeable, Clock: clock.RealClock{},
			Workers: o.workers, SelectByRelease: o.selectByRelease, Registry: metrics.Registry,
		},
	}, err
}
