// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/index"
	"shipper.dev/shipper/reconciler/retry"
)

// requestTimeout bounds the questions that are asked while connecting.
const requestTimeout = 30 * time.Second

// heartbeatLease is the Lease that heartbeats ask for. It need not exist.
const heartbeatLease = "shipper-heartbeat"

// Indexes over cached objects, in one namespace: the value of a label.
const (
	// ByApp indexes Pods, Services, EndpointSlices and ConfigMaps by the Application they belong to.
	ByApp = "shipper-app"
	// ByRelease indexes Pods and Deployments by the Release they belong to.
	ByRelease = "shipper-release"
)

// core is what is always cached, and the indexes over it.
var core = []struct {
	object  client.Object
	list    client.ObjectList
	indexes []string
}{
	{&appsv1.Deployment{}, &appsv1.DeploymentList{}, []string{ByRelease}},
	{&appsv1.StatefulSet{}, &appsv1.StatefulSetList{}, nil},
	{&appsv1.DaemonSet{}, &appsv1.DaemonSetList{}, nil},
	{&corev1.Service{}, &corev1.ServiceList{}, []string{ByApp}},
	{&corev1.Pod{}, &corev1.PodList{}, []string{ByApp, ByRelease}},
	{&corev1.ConfigMap{}, &corev1.ConfigMapList{}, []string{ByApp}},
	{&discoveryv1.EndpointSlice{}, &discoveryv1.EndpointSliceList{}, []string{ByApp}},
}

// session is a connection that stands: clients, caches and what was discovered.
type session struct {
	name    string
	number  uint64          // no other session of the fleet has it
	watches func() []*watch // all there are
	clock   clock.WithTicker
	cluster cluster.Cluster
	// consistent is the client of cluster whose Gets wait for its own writes.
	consistent client.Client
	// granted writes as the account of grants.
	granted client.Client
	http    *http.Client // for the heartbeat and discovery
	answers *answers     // the transport of everything else
	leases  coordinationv1client.LeasesGetter
	version string
	apis    []string
	done    <-chan struct{} // closed when the session is over
	ended   chan error      // the caches' end, when it comes before the session's
	stopped chan struct{}   // closed when the caches have stopped

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*kind
}

// open connects: probe, discover, check the rights, fill the caches, as long as the cluster answers. The session ends with
// ctx.
func (c *connection) open(ctx context.Context) (*session, error) {
	s, err := c.newSession(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.probe(ctx, s); err != nil {
		return nil, err
	}
	opening, giveUp := context.WithCancelCause(ctx)
	silent := make(chan error, 1)
	go func() {
		err := c.awaitSilence(opening, s)
		giveUp(err)
		silent <- err
	}()
	err = c.prepare(ctx, opening, s)
	giveUp(nil)
	if lost := <-silent; lost != nil {
		err = lost
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// prepare makes a session that nothing but the probe is known of fit for work. It gives up when opening is done.
func (c *connection) prepare(ctx, opening context.Context, s *session) error {
	if err := s.discover(opening, c.config()); err != nil {
		return err
	}
	ours, err := labels.Parse(shipper.AppLabel)
	if err != nil {
		return fmt.Errorf("selecting our objects: %w", err)
	}
	if s.cluster, err = cluster.New(c.config(), c.fleet.clusterOptions(ctx, s.answers, ours)); err != nil {
		return fmt.Errorf("making clients: %w", err)
	}
	if s.consistent, err = client.New(s.cluster.GetConfig(), client.Options{
		HTTPClient: s.cluster.GetHTTPClient(), Scheme: s.cluster.GetScheme(), Mapper: s.cluster.GetRESTMapper(),
		Cache: &client.CacheOptions{Reader: s.cluster.GetCache(), EnableReadYourWritesConsistency: ptr.To(true)},
	}); err != nil {
		return fmt.Errorf("making clients: %w", err)
	}
	if s.granted, err = s.newGranted(shipper.SystemNamespace); err != nil {
		return err
	}
	return s.fill(ctx, opening, c.fleet.options.SyncTimeout)
}

// newSession makes a session that knows nothing yet.
func (c *connection) newSession(ctx context.Context) (*session, error) {
	hc, err := rest.HTTPClientFor(c.config())
	if err != nil {
		return nil, &Error{Cluster: c.name, Reason: shipper.SecretInvalid, Message: retry.Brief(err), Err: err}
	}
	// A connection that died with the last session would hang this one.
	utilnet.CloseIdleConnectionsFor(hc.Transport)
	leases, err := coordinationv1client.NewForConfigAndClient(c.config(), hc)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return &session{
		name: c.name, number: c.fleet.sessions.Add(1), watches: c.fleet.allWatches, clock: c.fleet.options.Clock,
		http: hc, answers: newAnswers(ctx, hc.Transport), leases: leases,
		done: ctx.Done(), ended: make(chan error, 1), stopped: make(chan struct{}),
		kinds: map[schema.GroupVersionKind]*kind{},
	}, nil
}

// close waits until the caches have stopped.
func (s *session) close(cancel context.CancelFunc) {
	cancel()
	<-s.stopped
	utilnet.CloseIdleConnectionsFor(s.http.Transport)
}

// readLease asks the API server for something small.
func (s *session) readLease(ctx context.Context) error {
	_, err := s.leases.Leases(shipper.SystemNamespace).Get(ctx, heartbeatLease, metav1.GetOptions{})
	return err
}

// clusterOptions keep caches small: only what carries our label, and of that what strip leaves.
func (f *Fleet) clusterOptions(ctx context.Context, rt http.RoundTripper, ours labels.Selector) cluster.Option {
	logger := log.FromContext(ctx).WithName("fleet")
	return func(o *cluster.Options) {
		namespace := &metav1.PartialObjectMetadata{}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		o.Scheme = f.scheme
		o.HTTPClient = &http.Client{Transport: rt}
		o.Logger = logger
		o.Cache = cache.Options{
			DefaultLabelSelector: ours,
			DefaultTransform:     stripObject,
			ByObject:             map[client.Object]cache.ByObject{namespace: {Label: labels.Everything()}},
			// The heartbeat reports that a cluster died; a line for each of its watches would add nothing.
			DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) {
				logger.V(2).Info("A watch ended", "reason", err.Error())
			},
		}
	}
}

// fill checks that the core kinds may be listed, starts the caches and waits until they are full, or opening is done. The
// caches end with ctx.
func (s *session) fill(ctx, opening context.Context, timeout time.Duration) error {
	bounded, cancel := context.WithTimeout(opening, timeout)
	defer cancel()
	for _, k := range core {
		list, ok := k.list.DeepCopyObject().(client.ObjectList)
		if !ok {
			continue
		}
		if err := s.cluster.GetAPIReader().List(bounded, list, client.Limit(1)); err != nil {
			return err
		}
		for _, label := range k.indexes {
			if err := index.Within(bounded, s.cluster.GetCache(), k.object, label, byLabel(label)); err != nil {
				return err
			}
		}
		informer, err := s.cluster.GetCache().GetInformer(bounded, k.object, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		gvk, err := apiutil.GVKForObject(k.object, s.cluster.GetScheme())
		if err != nil {
			return err
		}
		s.kinds[gvk] = newKind(informer, k.object)
	}
	go func() {
		err := s.cluster.Start(ctx)
		if err == nil {
			err = errors.New("the caches have stopped")
		}
		s.ended <- err
		close(s.stopped)
	}()
	if !s.cluster.GetCache().WaitForCacheSync(bounded) {
		return fmt.Errorf("filling the caches within %s: %w", timeout, context.DeadlineExceeded)
	}
	return nil
}

// byLabel indexes objects by the value of a label.
func byLabel(label string) client.IndexerFunc {
	return func(object client.Object) []string {
		if value, ok := object.GetLabels()[label]; ok {
			return []string{value}
		}
		return nil
	}
}

// discover asks for the version and for all kinds, in the form charts ask for them: v1, v1/Pod, apps/v1, …
func (s *session) discover(ctx context.Context, config *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	d, err := discovery.NewDiscoveryClientForConfigAndClient(config, s.http)
	if err != nil {
		return fmt.Errorf("making a discovery client: %w", err)
	}
	s.version, s.apis, err = Discover(ctx, d)
	return err
}

// apiVersions lists groups and kinds, sorted and unique.
func apiVersions(lists []*metav1.APIResourceList) []string {
	var out []string
	for _, list := range lists {
		out = append(out, list.GroupVersion)
		for _, resource := range list.APIResources {
			out = append(out, list.GroupVersion+"/"+resource.Kind)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
