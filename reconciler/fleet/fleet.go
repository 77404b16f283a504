// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Options for New. The zero value of each field but Reader is usable.
type Options struct {
	// Reader reads Clusters of the management cluster, to distinguish clusters that do not exist from those that connect.
	Reader client.Reader
	// Namespace is Shipper's in the management cluster; messages name it. Default: shipper.SystemNamespace.
	Namespace string
	// Clock paces heartbeats and back-off. Default: the real one.
	Clock clock.WithTicker
	// Heartbeat is the time between two heartbeats. Default: 10 s.
	Heartbeat time.Duration
	// Timeout is how long a heartbeat may take. Default: 3 s.
	Timeout time.Duration
	// SyncTimeout is how long the caches may take to fill. Default: 2 min.
	SyncTimeout time.Duration
	// Backoff paces attempts to connect. Default: from 1 s to 5 s, jittered.
	Backoff wait.Backoff
	// Guard is put around the transport to each cluster. Default: none is.
	Guard transport.WrapperFunc
}

// State is what is known of a connection.
type State struct {
	// Ready is true while the cluster can be worked with.
	Ready bool
	// Pending is true while the first attempt to connect with the present credentials is under way.
	Pending bool
	// Reason and Message say why it is not ready.
	Reason, Message string
	// KubernetesVersion is what the API server said it is, on the last connection.
	KubernetesVersion string
	// Credentials are those of the last SetCredentials.
	Credentials Credentials
}

// Fleet is all connections to application clusters. It is safe for concurrent use.
type Fleet struct {
	options  Options
	scheme   *runtime.Scheme
	running  sync.WaitGroup
	sessions atomic.Uint64 // how many were begun

	mu          sync.Mutex
	identity    identity
	base        context.Context // nil until Start
	connections map[string]*connection
	credentials map[string]Credentials
	watches     []*watch
	listeners   []func(cluster string) // of connections
	warned      []func(cluster string) // of credentials
	observers   []func(cluster string) // of properties
}

var _ manager.LeaderElectionRunnable = (*Fleet)(nil)

// New makes an empty Fleet. Nothing connects before Start.
func New(o Options) *Fleet {
	if o.Namespace == "" {
		o.Namespace = shipper.SystemNamespace
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 10 * time.Second
	}
	if o.Timeout == 0 {
		o.Timeout = 3 * time.Second
	}
	if o.SyncTimeout == 0 {
		o.SyncTimeout = 2 * time.Minute
	}
	if o.Backoff == (wait.Backoff{}) {
		o.Backoff = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.25, Steps: 5, Cap: 4 * time.Second}
	}
	return &Fleet{options: o, scheme: scheme.Scheme,
		connections: map[string]*connection{}, credentials: map[string]Credentials{}}
}

// NeedLeaderElection is true: only the leader works in application clusters.
func (f *Fleet) NeedLeaderElection() bool {
	return true
}

// Start connects to all clusters that are set, now and later, until ctx is done; then it closes all connections.
func (f *Fleet) Start(ctx context.Context) error {
	f.mu.Lock()
	f.base = ctx
	for _, c := range f.connections {
		f.launch(c)
	}
	f.mu.Unlock()
	<-ctx.Done()
	f.running.Wait()
	return nil
}

// Set says how to reach a cluster, or by err, best an *Error, why that is not known. Credentials that differ from
// those in use end the connection and begin another; the same ones change nothing. Another token of the same account is used
// from the next request on by a connection that works: its caches and watches stay.
func (f *Fleet) Set(name string, access *Access, err error) {
	f.mu.Lock()
	old := f.connections[name]
	if err == nil && old != nil && old.serves(access) {
		f.mu.Unlock()
		return
	}
	c := &connection{fleet: f, name: name, access: access}
	if err == nil {
		c.token.store(access.Config.BearerToken)
	}
	if old != nil {
		c.state.KubernetesVersion = old.state.KubernetesVersion
		old.stop()
	}
	if err != nil {
		known := ConnectError(name, "", err)
		c.access = nil
		c.state.Reason, c.state.Message = known.Reason, known.Message
	} else {
		c.state.Pending = true
		c.state.Reason = shipper.TargetClusterClientError
		c.state.Message = fmt.Sprintf("connecting to %s", access.Config.Host)
	}
	f.connections[name] = c
	f.launch(c)
	changed := old == nil || old.state != c.state
	f.mu.Unlock()
	if changed {
		f.notify(name)
	}
}

// Remove closes the connection to a cluster and forgets it. It wakes listeners also when there is none: a Cluster that
// is being deleted has no connection any more, and what is waited for is its end.
func (f *Fleet) Remove(name string) {
	f.mu.Lock()
	if c, ok := f.connections[name]; ok {
		c.stop()
		delete(f.connections, name)
	}
	delete(f.credentials, name)
	f.mu.Unlock()
	f.notify(name)
}

// State reports how the connection to a cluster is. ok is false when it was never set, or removed.
func (f *Fleet) State(name string) (state State, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.connections[name]
	if !ok {
		return State{}, false
	}
	state = c.state
	state.Credentials = f.credentials[name]
	return state, true
}

// APIVersions are those of the Member of a cluster; nil while it is not connected. They must not be changed.
func (f *Fleet) APIVersions(name string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.connections[name]; ok && c.state.Ready {
		return c.member.session.apis
	}
	return nil
}

// Get returns the connection to a cluster. It never blocks on the cluster. The error is an *Error when the cluster
// cannot be used, or the identity of this management cluster is not known yet; WatchMembers reports
// when that changes.
func (f *Fleet) Get(ctx context.Context, name string) (*Member, error) {
	f.mu.Lock()
	c, ok := f.connections[name]
	var state State
	var member Member
	if ok {
		state = c.state
	}
	if state.Ready {
		member = *c.member
	}
	who := f.identity
	f.mu.Unlock()
	switch {
	case ok && state.Ready && who.id == "":
		return nil, who.missing(name)
	case ok && state.Ready:
		member.Identity, member.home = who.id, f.options.Namespace
		return &member, nil
	case ok:
		return nil, f.notReady(ctx, name, state)
	}
	unknown := &Error{Cluster: name, Reason: shipper.TargetClusterClientError, Message: "connecting", Pending: true}
	cluster := &shipper.Cluster{}
	err := f.options.Reader.Get(ctx, types.NamespacedName{Name: name}, cluster)
	switch {
	case err == nil && Gone(cluster):
		unknown.Message, unknown.Pending = fmt.Sprintf("Cluster %q is being deleted", name), false
	case apierrors.IsNotFound(err):
		unknown.Message, unknown.Pending = fmt.Sprintf("there is no Cluster %q", name), false
	case err != nil:
		return nil, fmt.Errorf("reading Cluster %q: %w", name, err)
	}
	return nil, unknown
}

// Gone reports whether a Cluster is being deleted and Shipper works there no more. One with onLeave: Remove stays connected, by its
// finalizer, until what Shipper placed there is removed.
func Gone(cluster *shipper.Cluster) bool {
	return cluster.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(cluster, shipper.ClusterFinalizer)
}

// notReady is why a cluster that is known cannot be worked with.
func (f *Fleet) notReady(ctx context.Context, name string, state State) error {
	out := &Error{Cluster: name, Reason: state.Reason, Message: state.Message, Pending: state.Pending}
	if state.KubernetesVersion != "" || !ofCredentials(state.Reason) {
		return out
	}
	cluster := &shipper.Cluster{}
	if err := f.options.Reader.Get(ctx, types.NamespacedName{Name: name}, cluster); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Cluster %q: %w", name, err)
	}
	// The first connection that works writes the version, whichever process made it.
	out.Untried = cluster.Status.KubernetesVersion == ""
	return out
}

// ofCredentials reports whether a reason says that the account or its credentials do not suffice.
func ofCredentials(reason string) bool {
	return reason == shipper.SecretMissing || reason == shipper.SecretInvalid || reason == shipper.CredentialsRefused
}

// launch runs c in the background when the fleet runs and there is something to run. f.mu is held.
func (f *Fleet) launch(c *connection) {
	if f.base == nil || c.access == nil || c.cancel != nil || f.base.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(f.base)
	c.cancel = cancel
	f.running.Go(func() { c.run(ctx) })
}

// set records the state of c if that is still the connection in use for its name. It wakes listeners when the
// state changed.
func (f *Fleet) set(c *connection, state State, member *Member) {
	f.mu.Lock()
	if f.connections[c.name] != c {
		f.mu.Unlock()
		return
	}
	if state.KubernetesVersion == "" {
		state.KubernetesVersion = c.state.KubernetesVersion
	}
	changed := c.state != state || c.member != member
	c.state, c.member = state, member
	if member == nil {
		c.properties = nil
	}
	f.mu.Unlock()
	if changed {
		f.notify(c.name)
	}
}
