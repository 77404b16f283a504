// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"shipper.dev/shipper/reconciler/retry"
)

// connection is one cluster with one set of credentials. Its fields but the first four are guarded by the fleet's
// mutex.
type connection struct {
	fleet  *Fleet
	name   string
	access *Access // nil when it is not known how to reach the cluster
	token  token   // in use; that of access is the one that the connection began with

	cancel     context.CancelFunc // nil until it runs
	state      State
	member     *Member     // nil unless state.Ready
	properties *Properties // of the session of member; nil until they are known
}

// stop ends the connection. The fleet's mutex is held.
func (c *connection) stop() {
	if c.cancel != nil {
		c.cancel()
	}
	c.member, c.properties = nil, nil
	c.state.Ready = false
}

// serves reports whether the connection will do for access, which may have another token of the same account: then it is taken,
// and looked at at once. A connection that does not work begins again with it. The fleet's mutex is held.
func (c *connection) serves(access *Access) bool {
	if c.access == nil || c.access.Fingerprint != access.Fingerprint {
		return false
	}
	if c.token.load() == access.Config.BearerToken {
		return true
	}
	if !c.state.Ready {
		return false
	}
	c.token.store(access.Config.BearerToken)
	c.member.session.answers.suspect()
	return true
}

// run connects, again and again, until ctx is done.
func (c *connection) run(ctx context.Context) {
	backoff := c.fleet.options.Backoff
	for {
		c.serve(ctx, &backoff)
		if ctx.Err() != nil {
			return
		}
		timer := c.fleet.options.Clock.NewTimer(backoff.Step())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

// serve connects, and stays until the cluster is lost. Once connected it resets backoff. That the cluster is lost is said
// before anything is taken down.
func (c *connection) serve(ctx context.Context, backoff *wait.Backoff) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := c.open(ctx)
	if err != nil {
		c.lost(ctx, err)
		return
	}
	defer s.close(cancel)
	*backoff = c.fleet.options.Backoff
	log.FromContext(ctx).WithName("fleet").Info("Cluster is connected", "cluster", c.name, "version", s.version)
	c.fleet.set(c, State{Ready: true, KubernetesVersion: s.version}, &Member{Name: c.name, session: s})
	s.attach(c.fleet.allWatches())
	c.fleet.running.Go(func() { c.observe(ctx, s) })
	c.lost(ctx, c.beat(ctx, s))
}

// lost says why the cluster cannot be worked with, unless it is left on purpose.
func (c *connection) lost(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	failure := ConnectError(c.name, c.access.Config.Host, err)
	if apierrors.IsUnauthorized(err) {
		failure.Message = Refused(c.access.Config.Host, c.token.credential(c.access.Config), c.fleet.options.Clock.Now())
	}
	log.FromContext(ctx).WithName("fleet").Info("Cluster cannot be worked with",
		"cluster", c.name, "reason", failure.Reason, "message", failure.Message)
	c.fleet.set(c, State{Reason: failure.Reason, Message: failure.Message}, nil)
}

// beat returns when the cluster is lost or ctx is done. A request that waits for long is as good as a heartbeat that
// failed: one more probe decides, unless another request is answered meanwhile.
func (c *connection) beat(ctx context.Context, s *session) error {
	ticker := c.fleet.options.Clock.NewTicker(c.fleet.options.Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-s.ended:
			return err
		case <-s.answers.suspected:
			answered := s.answers.count.Load()
			if err := c.probe(ctx, s); err != nil && s.answers.count.Load() == answered {
				return err
			}
			continue
		case <-ticker.C():
		}
		if err := c.probe(ctx, s); err == nil {
			continue
		}
		if err := c.probe(ctx, s); err != nil {
			return err
		}
	}
}

// awaitSilence returns when a cluster that is being connected to does not answer any more, or without an error when ctx is
// done. While caches fill, a heartbeat may be late behind what comes for them: as long as something comes, the cluster lives.
func (c *connection) awaitSilence(ctx context.Context, s *session) error {
	ticker := c.fleet.options.Clock.NewTicker(c.fleet.options.Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		heard := s.answers.heard.Load()
		err := c.probe(ctx, s)
		if err != nil {
			err = c.probe(ctx, s)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (!retry.Unanswered(err) || s.answers.heard.Load() == heard):
			return err
		}
	}
}

// probe reads a Lease. Any answer reports that the API server lives, but 401, which reports that it does not know us,
// and 5xx, which may as well come from a load balancer before a dead one.
func (c *connection) probe(ctx context.Context, s *session) error {
	ctx, cancel := context.WithTimeout(ctx, c.fleet.options.Timeout)
	defer cancel()
	err := s.readLease(ctx)
	var answer apierrors.APIStatus
	if errors.As(err, &answer) && !apierrors.IsUnauthorized(err) && answer.Status().Code < 500 {
		return nil
	}
	return err
}
