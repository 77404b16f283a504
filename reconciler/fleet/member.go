// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// kindSyncTimeout is how long the first read of a kind waits for its cache before it is read one by one.
	kindSyncTimeout = 10 * time.Second
	// kindRetry is how long after that the cache is tried again first; each time it is twice as long, and kindRetryMost at most: no event
	// reports that an administrator has granted the right to watch the kind.
	kindRetry, kindRetryMost = 30 * time.Second, 2 * time.Minute
)

// Member is a cluster that can be worked with. It is good for one pass: ask the Fleet again in the next.
type Member struct {
	// Name of the Cluster.
	Name string
	// Identity is that of the management cluster, at the time of the pass.
	Identity string

	home    string // the namespace of Shipper in the management cluster
	session *session
}

// Client reads Deployments, Services, Pods, ConfigMaps and EndpointSlices of ours from caches, and writes everything. Not cached are
// the data of ConfigMaps other than anchors, what the Pods of Deployments and Pods themselves are made of (spec.template but for the
// labels of which Services they are made for, spec, and in the status of healthy Pods what their containers are made of), and where
// Pods are reached. Objects read here must not be written as a whole, and what is in its maps not be changed where it was not copied. For
// other kinds read Metadata.
func (m *Member) Client() client.Client {
	return m.session.cluster.GetClient()
}

// Consistent is Client for the kinds that every session caches: workloads, Services, Pods, ConfigMaps and EndpointSlices. A Get waits until
// the cache shows what Consistent has written to that object. A write of another kind would start a watch of it.
func (m *Member) Consistent() client.Client {
	return m.session.consistent
}

// WaitForCache waits until the cache shows what Consistent has written to objects, into which it reads them.
func (m *Member) WaitForCache(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		if err := m.session.consistent.Get(ctx, client.ObjectKeyFromObject(o), o); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("waiting for the cache to show %s/%s: %w", o.GetNamespace(), o.GetName(), err)
		}
	}
	return nil
}

// Live reads from the API server itself.
func (m *Member) Live() client.Reader {
	return m.session.cluster.GetAPIReader()
}

// Session is the number of the connection. Another one has caches of its own, and may be to an API server that was put back
// to an earlier time: notes that are compared with caches end with the session.
func (m *Member) Session() uint64 {
	return m.session.number
}

// KubeVersion is what the API server says it is, for example v1.37.1.
func (m *Member) KubeVersion() string {
	return m.session.version
}

// APIVersions are the groups and kinds the cluster served when it was connected, in the form charts ask for them.
func (m *Member) APIVersions() []string {
	return m.session.apis
}

// Mapping reports how the cluster serves a kind. The error satisfies meta.IsNoMatchError when it does not, also after
// asking again.
func (m *Member) Mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	return m.session.cluster.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
}

// Context is ctx, ended early when the cluster is lost or when timeout has passed.
func (m *Member) Context(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return m.session.within(ctx, timeout)
}

func (s *session) within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	go func() {
		select {
		case <-s.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// Metadata reads an object of ours of any kind, or any Namespace, from a cache that is made when a kind is first
// asked for. From then on the handlers of WatchInstalled get the kind's events.
func (m *Member) Metadata(
	ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey,
) (*metav1.PartialObjectMetadata, error) {
	k, err := m.session.use(ctx, gvk)
	if err != nil {
		return nil, err
	}
	if k.typed != nil {
		return typedMetadata(ctx, m.Client(), k.typed, gvk, key)
	}
	if k.informer == nil {
		return metadata(ctx, m.Live(), gvk, key)
	}
	out, _, err := m.session.cached(ctx, gvk, key)
	return out, err
}

// LiveMetadata reads an object of any kind, ours or not, from the API server itself.
func (m *Member) LiveMetadata(
	ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey,
) (*metav1.PartialObjectMetadata, error) {
	return metadata(ctx, m.Live(), gvk, key)
}

func metadata(
	ctx context.Context, reader client.Reader, gvk schema.GroupVersionKind, key client.ObjectKey,
) (*metav1.PartialObjectMetadata, error) {
	out := &metav1.PartialObjectMetadata{}
	out.SetGroupVersionKind(gvk)
	if err := reader.Get(ctx, key, out); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", gvk.Kind, key.Name, err)
	}
	return out, nil
}

// typedMetadata reads from the cache of a core kind, so that there is one cache of it and not two.
func typedMetadata(
	ctx context.Context, reader client.Reader, like client.Object, gvk schema.GroupVersionKind, key client.ObjectKey,
) (*metav1.PartialObjectMetadata, error) {
	object, ok := like.DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("reading %s %s: not an object", gvk.Kind, key.Name)
	}
	if err := reader.Get(ctx, key, object); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", gvk.Kind, key.Name, err)
	}
	accessor, ok := object.(metav1.ObjectMetaAccessor)
	if !ok {
		return nil, fmt.Errorf("reading %s %s: it has no metadata", gvk.Kind, key.Name)
	}
	out := &metav1.PartialObjectMetadata{}
	out.SetGroupVersionKind(gvk)
	if om, ok := accessor.GetObjectMeta().(*metav1.ObjectMeta); ok {
		out.ObjectMeta = *om
	}
	return out, nil
}

// use makes sure that there is a cache of a kind, and that its handlers get its events.
func (s *session) use(ctx context.Context, gvk schema.GroupVersionKind) (*kind, error) {
	s.mu.Lock()
	k, ok := s.kinds[gvk]
	s.mu.Unlock()
	if !ok {
		var err error
		if k, err = s.cacheMetadata(ctx, gvk); err != nil {
			return nil, err
		}
	}
	if !k.installed.Swap(true) {
		s.attach(s.watches())
	}
	return k, nil
}

// cacheMetadata makes a cache of the metadata of a kind, and of the health of its objects. When it does not fill, most often
// because the account may not list or watch the kind, the kind is read one by one until a later attempt succeeds.
func (s *session) cacheMetadata(ctx context.Context, gvk schema.GroupVersionKind) (*kind, error) {
	informer, err := s.inform(ctx, gvk)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k, ok := s.kinds[gvk]; ok {
		return k, nil
	}
	k := newKind(informer, nil)
	s.kinds[gvk] = k
	if informer == nil {
		go s.cacheLater(context.WithoutCancel(ctx), gvk)
	}
	return k, nil
}

// inform fills a cache of the metadata of a kind. It is nil, and none is left, when that takes longer than kindSyncTimeout.
func (s *session) inform(ctx context.Context, gvk schema.GroupVersionKind) (cache.Informer, error) {
	like := likeOf(gvk)
	bounded, cancel := context.WithTimeout(ctx, kindSyncTimeout)
	defer cancel()
	informer, err := s.cluster.GetCache().GetInformer(bounded, like)
	switch {
	case err == nil:
		return informer, nil
	case ctx.Err() != nil || meta.IsNoMatchError(err):
		return nil, fmt.Errorf("reading %s: %w", gvk.Kind, err)
	}
	if err := s.cluster.GetCache().RemoveInformer(ctx, like); err != nil {
		return nil, fmt.Errorf("giving up the cache of %s: %w", gvk.Kind, err)
	}
	return nil, nil
}

// cacheLater tries to cache a kind, at least every kindRetryMost, until it is cached or the session is over. The handlers then get all its
// objects.
func (s *session) cacheLater(ctx context.Context, gvk schema.GroupVersionKind) {
	for wait := kindRetry; ; wait = min(2*wait, kindRetryMost) {
		timer := s.clock.NewTimer(wait)
		select {
		case <-s.done:
			timer.Stop()
			return
		case <-timer.C():
		}
		trying, cancel := s.within(ctx, 2*kindSyncTimeout)
		informer, err := s.inform(trying, gvk)
		cancel()
		if err != nil || informer == nil {
			continue
		}
		k := newKind(informer, nil)
		k.installed.Store(true)
		s.mu.Lock()
		s.kinds[gvk] = k
		s.mu.Unlock()
		s.attach(s.watches())
		return
	}
}
