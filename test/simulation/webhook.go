// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/chart/values"
	"shipper.dev/shipper/webhook"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/resources"
	"shipper.dev/shipper/webhook/state"
)

// account is the user name of Shipper's reconciler.
const account = "system:serviceaccount:" + shipper.SystemNamespace + ":" + shipper.ManagementServiceAccount

// replica is one life of a webhook: the handlers by path, and whether it is ready.
type replica struct {
	name     string
	handlers map[string]http.Handler
	ready    func(context.Context) error
}

// Register is webhook.Server.
func (r *replica) Register(path string, hook http.Handler) { r.handlers[path] = hook }

// ServeHTTP answers a review.
func (r *replica) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	handler := r.handlers[request.URL.Path]
	if handler == nil {
		http.NotFound(w, request)
		return
	}
	handler.ServeHTTP(w, request)
}

// admit runs a replica of the webhook, as its command does but for certificates.
func (w *World) admit(ctx context.Context, c *Client) error {
	config := &rest.Config{Host: "http://" + management, BearerToken: c.process, QPS: -1, UserAgent: "shipper-webhook", Transport: c}
	stream := state.NewStream(clock.RealClock{})
	config.Wrap(stream.Wrap)
	scheme := runtime.NewScheme()
	if err := errors.Join(shipper.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: cache.Options{DefaultTransform: state.Strip},
	})
	if err != nil {
		return err
	}
	known, err := state.Watch(ctx, mgr.GetCache(), stream, mgr.GetAPIReader(), shipper.GlobalBlocksNamespace)
	if err != nil {
		return err
	}
	r := &replica{name: c.process, handlers: map[string]http.Handler{}, ready: known.Ready}
	if err := w.register(ctx, mgr, c, r, known.Reader); err != nil {
		return err
	}
	w.Network.serve(r.name, r)
	w.replicas.add(r)
	defer w.replicas.remove(r)
	go c.awaitStart(mgr.GetCache())
	return mgr.Start(ctx)
}

// register adds all webhooks to a replica. Users have all rights.
func (w *World) register(ctx context.Context, mgr ctrl.Manager, c *Client, r *replica, reader *state.Reader) error {
	urls, outgoing, err := policies()
	if err != nil {
		return err
	}
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	return webhook.Setup(r, webhook.Options{
		State: reader, Ready: r.ready, Authz: authz.From(authorizerfactory.NewAlwaysAllowAuthorizer()),
		Charts: repository.NewCatalog(ctx, repository.Options{
			Repositories: urls, Transport: c, Secrets: repository.SecretsOf(mgr.GetAPIReader()), SystemNamespace: shipper.SystemNamespace,
		}),
		Sources: func(ctx context.Context, namespace string, from []shipper.ValuesSource) (values.Held, error) {
			return values.ReadSources(ctx, mgr.GetAPIReader(), namespace, from)
		},
		Outgoing: &outgoing, Kinds: resources.Discovered(mgr.GetRESTMapper(), kinds, clock.RealClock{}),
		Reconciler: account, Namespace: shipper.SystemNamespace, Registry: prometheus.NewRegistry(), Clock: clock.RealClock{},
		Log: logr.Discard(),
	})
}

// awaitWebhooks waits until so many replicas are ready.
func (w *World) awaitWebhooks(count int) {
	w.T.Helper()
	for began := time.Now(); w.replicas.ready() < count; time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > time.Hour {
			w.T.Fatal("the webhook does not become ready")
		}
	}
}
