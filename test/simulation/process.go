// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/reconciler"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/process"
)

const (
	// userName is the process name of users' clients.
	userName = "user"
	// approverName is that of the client of another user: who requests something does not approve it.
	approverName = "approver"
	// reconcilers and webhooks begin the names of processes.
	reconcilers, webhooks = "reconciler-", "webhook-"
	// backOff is how long a container that ended by itself waits until it is started again. One that was killed starts at once.
	backOff = 10 * time.Second
	// seenStart is how long after its caches are filled a manager may take to see it.
	seenStart = 300 * time.Millisecond
)

func isReconciler(name string) bool { return strings.HasPrefix(name, reconcilers) }

// supervisor keeps a process running, one life after another.
type supervisor struct {
	world *World
	name  string
	run   func(context.Context, *Client) error
	done  chan struct{}

	mu     sync.Mutex
	client *Client // of the present life
}

// supervise starts a process, and again whenever it ends, until ctx is done.
func (w *World) supervise(ctx context.Context, name string, run func(context.Context, *Client) error) *supervisor {
	s := &supervisor{world: w, name: name, run: run, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for ctx.Err() == nil {
			s.live(ctx)
		}
	}()
	return s
}

// live is one life.
func (s *supervisor) live(ctx context.Context) {
	c := s.world.Network.newClient(context.WithoutCancel(ctx), s.name)
	s.mu.Lock()
	s.client = c
	s.mu.Unlock()
	s.world.history.Note("life", "%s begins", s.name)
	defer context.AfterFunc(ctx, c.kill)()
	defer close(c.over)
	err := s.run(c.ctx, c)
	if c.isDead() {
		<-c.ctx.Done()
		s.world.history.Note("life", "%s was killed", s.name)
		return
	}
	c.end()
	<-c.ctx.Done()
	s.world.history.Note("life", "%s ended by itself: %v", s.name, err)
	s.world.endedByItself(fmt.Errorf("%s: %w", s.name, errors.Join(err, errors.New("it was not asked to"))))
	pause(ctx, backOff)
}

// kill ends the present life.
func (s *supervisor) kill() {
	s.mu.Lock()
	c := s.client
	s.mu.Unlock()
	if c != nil {
		c.kill()
	}
}

// spare lets the present life go on that was to end with its next write.
func (s *supervisor) spare() {
	s.mu.Lock()
	c := s.client
	s.mu.Unlock()
	if c != nil {
		c.mu.Lock()
		c.dying = false
		c.mu.Unlock()
	}
}

// reconcile runs a reconciler, as its command does.
func (w *World) reconcile(ctx context.Context, c *Client) error {
	urls, outgoing, err := policies()
	if err != nil {
		return err
	}
	mgr, err := process.New(ctx, process.Options{
		Config: &rest.Config{
			Host: "http://" + management, BearerToken: c.process, QPS: -1, UserAgent: fleet.UserAgent, Transport: c,
		},
		LeaderElect: w.plan.Replicas > 1, Identity: c.process,
		HealthAddr: "0", MetricsAddr: "0",
		Clusters:   c,
		Charts:     repository.Options{Repositories: urls, Transport: c},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}, // names are remembered for the whole process
		Reconciler: reconciler.Options{
			Namespace: shipper.SystemNamespace, GlobalBlocksNamespace: shipper.GlobalBlocksNamespace,
			OutgoingURLs: &outgoing, Outgoing: c, Clock: clock.RealClock{}, Workers: workers, SelectByRelease: true,
		},
	})
	if err != nil {
		return err
	}
	go c.awaitStart(mgr.GetCache())
	return mgr.Start(ctx)
}

// policies are those for the repositories of charts, and for other servers that users name.
func policies() (repositories, outgoing outward.Policy, err error) {
	if repositories, err = outward.ParsePolicy(chartsURL); err != nil {
		return repositories, outgoing, err
	}
	outgoing, err = outward.ParsePolicy(checksURL)
	return repositories, outgoing, err
}

// awaitStart waits until the caches of a process are filled, and its manager has seen that.
func (c *Client) awaitStart(caches cache.Cache) {
	if caches.WaitForCacheSync(c.ctx) {
		pause(c.ctx, seenStart)
		close(c.started)
	}
}
