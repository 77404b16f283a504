// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/reconciler"
	"shipper.dev/shipper/reconciler/fence"
)

// graceTimeout bounds the time for work in progress to end.
const graceTimeout = 20 * time.Second

// run reconciles until ctx is done. It ends with an error when another reconciler became the leader.
func run(ctx context.Context, o *options) error {
	mgr, guard, err := newManager(o)
	if err != nil {
		return err
	}
	err = reconciler.Setup(ctx, mgr, reconciler.Options{
		Namespace: o.namespace, GlobalBlocksNamespace: o.blocksNamespace, SharedChecksNamespace: o.sharedChecks,
		UnhealthyAfter: o.unhealthyAfter,
		Charts: repository.NewCatalog(ctx, repository.Options{
			CacheDir: o.chartCacheDir, Repositories: o.repositories, Log: mgr.GetLogger().WithName("chart"),
			Secrets: repository.SecretsOf(mgr.GetAPIReader()), SystemNamespace: o.namespace,
		}),
		OutgoingURLs: o.outgoing, Placeable: o.placeable, Clock: clock.RealClock{}, Workers: o.workers, SelectByRelease: o.selectByRelease,
		Registry: metrics.Registry, Guard: guard,
	})
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
	return mgr.Start(ctx)
}

// newManager returns the manager, and a transport that stops the writes of a former leader; nil without leader election.
func newManager(o *options) (manager.Manager, transport.WrapperFunc, error) {
	config, err := o.restConfig()
	if err != nil {
		return nil, nil, err
	}
	scheme, err := reconciler.NewScheme()
	if err != nil {
		return nil, nil, err
	}
	lock, err := newLock(config, o.namespace, o.identity)
	if err != nil {
		return nil, nil, err
	}
	config = rest.CopyConfig(config)
	var guard transport.WrapperFunc
	if o.leaderElect {
		t := fence.New(clock.RealClock{}, leaseDuration-retryPeriod)
		lock, guard = t.Lock(lock), t.Wrap
		config.Wrap(guard)
	}
	grace, lease, deadline, retry := graceTimeout, leaseDuration, renewDeadline, retryPeriod
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme:                              scheme,
		Cache:                               reconciler.CacheOptions(o.namespace),
		NewClient:                           reconciler.NewClient,
		Metrics:                             metricsserver.Options{BindAddress: o.metricsAddr},
		HealthProbeBindAddress:              o.healthAddr,
		PprofBindAddress:                    o.pprofAddr(),
		LeaderElection:                      o.leaderElect,
		LeaderElectionResourceLockInterface: lock,
		LeaseDuration:                       &lease,
		RenewDeadline:                       &deadline,
		RetryPeriod:                         &retry,
		LeaderElectionReleaseOnCancel:       true,
		GracefulShutdownTimeout:             &grace,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("building manager: %w", err)
	}
	return mgr, guard, nil
}
