// SPDX-License-Identifier: Apache-2.0

// Package process builds a reconciler that runs as a process: a manager, its Lease and its controllers. The command builds it with the
// network and addresses to serve on; test/simulation builds it with connections in memory.
package process

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/reconciler"
	"shipper.dev/shipper/reconciler/fence"
)

// graceTimeout bounds the time for work in progress to end.
const graceTimeout = 20 * time.Second

// Options of a reconciler's process.
type Options struct {
	// Config reaches the management cluster.
	Config *rest.Config
	// LeaderElect makes the process write only while it holds the Lease, under the name Identity. Empty: a random name.
	LeaderElect bool
	Identity    string
	// HealthAddr, MetricsAddr and PprofAddr are served. "0" serves neither health nor metrics; empty serves no profiles.
	HealthAddr, MetricsAddr, PprofAddr string
	// Clusters makes the requests to application clusters. Nil: the network does.
	Clusters http.RoundTripper
	// Charts configures where charts come from. New fills in Log, Secrets and SystemNamespace.
	Charts repository.Options
	// Reconciler has the rest. New fills in Charts and Guard.
	Reconciler reconciler.Options
	// Controller has defaults of all controllers.
	Controller config.Controller
}

// New returns the manager of a reconciler with all its controllers. ctx must last as long as the process. Start ends with an error when
// another process became the leader.
func New(ctx context.Context, o Options) (manager.Manager, error) {
	mgr, guard, err := NewManager(o)
	if err != nil {
		return nil, err
	}
	o.Charts.Log = mgr.GetLogger().WithName("chart")
	o.Charts.Secrets, o.Charts.SystemNamespace = repository.SecretsOf(mgr.GetAPIReader()), o.Reconciler.Namespace
	o.Reconciler.Charts = repository.NewCatalog(ctx, o.Charts)
	o.Reconciler.Guard = guard
	return mgr, reconciler.Setup(ctx, mgr, o.Reconciler)
}

// NewManager returns the manager without controllers, and what to put around the transport to each application cluster: with leader
// election it refuses writes while another process may lead.
func NewManager(o Options) (manager.Manager, transport.WrapperFunc, error) {
	scheme, err := reconciler.NewScheme()
	if err != nil {
		return nil, nil, err
	}
	grace, lease, deadline, retry := graceTimeout, LeaseDuration, renewDeadline, retryPeriod
	options := manager.Options{
		Scheme:                        scheme,
		Cache:                         reconciler.CacheOptions(o.Reconciler.Namespace),
		NewClient:                     reconciler.NewClient,
		Metrics:                       metricsserver.Options{BindAddress: o.MetricsAddr},
		HealthProbeBindAddress:        o.HealthAddr,
		PprofBindAddress:              o.PprofAddr,
		Controller:                    o.Controller,
		LeaderElection:                o.LeaderElect,
		LeaseDuration:                 &lease,
		RenewDeadline:                 &deadline,
		RetryPeriod:                   &retry,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &grace,
	}
	if !o.LeaderElect {
		mgr, err := ctrl.NewManager(rest.CopyConfig(o.Config), options)
		if err != nil {
			return nil, nil, fmt.Errorf("building manager: %w", err)
		}
		return mgr, o.wrapper(nil), nil
	}
	lock, events, err := newLock(o.Config, o.Reconciler.Namespace, o.Identity)
	if err != nil {
		return nil, nil, err
	}
	f := fence.New(clock.RealClock{}, LeaseDuration-retryPeriod)
	options.LeaderElectionResourceLockInterface = f.Lock(lock)
	managed := rest.CopyConfig(o.Config)
	managed.Wrap(f.Wrap)
	mgr, err := ctrl.NewManager(managed, options)
	if err != nil {
		events.Shutdown()
		return nil, nil, fmt.Errorf("building manager: %w", err)
	}
	return candidate{Manager: mgr, events: events}, o.wrapper(f), nil
}

// wrapper is nil where the network's transport is to be used as it is.
func (o Options) wrapper(f *fence.Fence) transport.WrapperFunc {
	if f == nil && o.Clusters == nil {
		return nil
	}
	return func(next http.RoundTripper) http.RoundTripper {
		if o.Clusters != nil {
			next = o.Clusters
		}
		if f != nil {
			next = f.Wrap(next)
		}
		return next
	}
}
