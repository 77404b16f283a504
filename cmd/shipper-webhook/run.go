// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/certs"
	"shipper.dev/shipper/certs/reviewpath"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/chart/values"
	"shipper.dev/shipper/cmd/start"
	"shipper.dev/shipper/webhook"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/resources"
	"shipper.dev/shipper/webhook/state"
)

// run serves until asked is done, and then until the server is drained.
func run(asked context.Context, o *options) error {
	ctx, stop := context.WithCancel(context.WithoutCancel(asked))
	defer stop()
	host, port, err := o.listen()
	if err != nil {
		return err
	}
	clients, err := o.clients()
	if err != nil {
		return err
	}
	late := &late{}
	reviews := newServer(net.JoinHostPort(host, strconv.Itoa(port)), late.configure, clients.Configure)
	reviews.gate = late.gate
	d := newDrainingServer(ctx, reviews)
	go func() {
		<-asked.Done()
		d.drain(clock.RealClock{}, o.shutdownDelay)
		stop()
	}()
	mgr, err := build(ctx, o, d, late, clients)
	if err != nil {
		return err
	}
	return start.Manager(ctx, mgr)
}

// build adds everything to one manager.
func build(
	ctx context.Context, o *options, d *drainingServer, late *late, clients *certs.Clients,
) (manager.Manager, error) {
	certOptions := o.certOptions()
	certOptions.Registry, certOptions.Clock = metrics.Registry, clock.RealClock{}
	stream := state.NewStream(clock.RealClock{})
	mgr, err := newManager(o, certOptions, stream)
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(d); err != nil {
		return nil, fmt.Errorf("adding the server: %w", err)
	}
	if clients != nil {
		if err := mgr.Add(clients); err != nil {
			return nil, fmt.Errorf("adding the clients' authorities: %w", err)
		}
	}
	if err := late.setup(ctx, mgr, certOptions); err != nil {
		return nil, err
	}
	known, err := state.Watch(ctx, mgr.GetCache(), stream, mgr.GetAPIReader(), o.blocksNamespace)
	if err != nil {
		return nil, err
	}
	who, kinds, err := rightsAndKinds(mgr)
	if err != nil {
		return nil, err
	}
	err = webhook.Setup(guarded{d, clients}, webhook.Options{
		State: known.Reader, Ready: known.Ready, Authz: who,
		Charts: repository.NewCatalog(ctx, repository.Options{
			CacheDir: o.chartCacheDir, Repositories: o.repositories, Log: mgr.GetLogger().WithName("chart"),
			Secrets: repository.SecretsOf(mgr.GetAPIReader()), SystemNamespace: o.namespace,
		}),
		Sources: func(ctx context.Context, namespace string, from []shipper.ValuesSource) (values.Held, error) {
			return values.ReadSources(ctx, mgr.GetAPIReader(), namespace, from)
		},
		Outgoing: o.outgoing, SharedChecks: o.sharedChecksNamespace, UnhealthyAfter: o.unhealthyAfter,
		Kinds: kinds, Placeable: o.placeable,
		Reconciler: o.reconcilerUser, Namespace: o.namespace, Registry: metrics.Registry, Clock: clock.RealClock{},
		Log: mgr.GetLogger().WithName("webhook"),
	})
	if err != nil {
		return nil, err
	}
	return mgr, addChecks(mgr, map[string]healthz.Checker{
		"leaving":     d.ready,
		"caches":      func(r *http.Request) error { return known.Ready(r.Context()) },
		"certificate": late.source.Ready,
		"path":        late.path.Ready,
		"webhook":     d.StartedChecker(),
	})
}

// rightsAndKinds asks the API server what users may do, and which kinds there are.
func rightsAndKinds(mgr manager.Manager) (authz.Authorizer, resources.Kinds, error) {
	api, err := authorizationclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, nil, fmt.Errorf("building client for rights: %w", err)
	}
	who, err := authz.Delegated(api)
	if err != nil {
		return nil, nil, err
	}
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, nil, fmt.Errorf("building client for kinds: %w", err)
	}
	return who, resources.Discovered(mgr.GetRESTMapper(), kinds, clock.RealClock{}), nil
}

func newManager(o *options, certOptions certs.Options, stream *state.Stream) (manager.Manager, error) {
	if err := errors.Join(pings(), stream.Register(metrics.Registry)); err != nil {
		return nil, err
	}
	config, err := o.restConfig()
	if err != nil {
		return nil, err
	}
	config.Wrap(stream.Wrap)
	scheme := runtime.NewScheme()
	if err := errors.Join(shipper.AddToScheme(scheme), corev1.AddToScheme(scheme), certs.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("building scheme: %w", err)
	}
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: o.metricsAddr},
		HealthProbeBindAddress: o.healthAddr,
		PprofBindAddress:       o.pprofAddr(),
		Cache: cache.Options{
			DefaultTransform: state.Strip,
			ByObject:         certs.CacheOptions(certOptions),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("building manager: %w", err)
	}
	return mgr, nil
}

// pings makes client-go detect dead connections sooner. It can be set only through the environment.
func pings() error {
	var errs []error
	for name, after := range map[string]time.Duration{
		"HTTP2_READ_IDLE_TIMEOUT_SECONDS": state.PingAfter, "HTTP2_PING_TIMEOUT_SECONDS": state.PingTimeout,
	} {
		if os.Getenv(name) == "" {
			errs = append(errs, os.Setenv(name, strconv.Itoa(int(after.Seconds()))))
		}
	}
	return errors.Join(errs...)
}

// late has what a server needs that is created before it.
type late struct {
	source certs.Source
	path   *reviewpath.Path
}

func (l *late) setup(ctx context.Context, mgr manager.Manager, o certs.Options) (err error) {
	if l.source, err = certs.Setup(ctx, mgr, o); err != nil {
		return err
	}
	l.path, err = reviewpath.Setup(ctx, mgr, reviewpath.Options{
		Secret: o.Secret, Configurations: o.Configurations, Lifetime: o.Lifetimes.Certificate, Clock: clock.RealClock{},
	})
	return err
}

func (l *late) gate(isHook func(string) bool, next http.Handler) http.Handler {
	return l.path.Gate(isHook, next)
}

func (l *late) configure(c *tls.Config) {
	c.MinVersion = tls.VersionTLS13 // every API server that Shipper supports speaks it
	c.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return l.source.GetCertificate(hello) }
}

// guarded is a server that admits only permitted clients.
type guarded struct {
	webhook.Server
	clients *certs.Clients
}

// Register makes hook answer permitted clients only.
func (g guarded) Register(path string, hook http.Handler) {
	g.Server.Register(path, g.clients.Require(hook))
}

func addChecks(mgr manager.Manager, ready map[string]healthz.Checker) error {
	errs := []error{mgr.AddHealthzCheck("ping", healthz.Ping)}
	for name, check := range ready {
		errs = append(errs, mgr.AddReadyzCheck(name, check))
	}
	return errors.Join(errs...)
}
