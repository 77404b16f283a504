// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// longest is the longest wait for time alone: clocks are set, and machines sleep.
const longest = time.Hour

// rotation keeps the Secret and the webhook configurations what they should be. Every replica runs one; whoever is first
// writes, and what the others were about to write is refused by the resource version.
type rotation struct {
	policy policy
	secret types.NamespacedName
	name   string // of the webhook configurations

	cached client.Reader
	api    client.Reader // asks the API server
	writer client.Writer
	clock  clock.PassiveClock
	log    logr.Logger

	// serving is the certificate that this process serves with, nil for none.
	serving func() *x509.Certificate
	// ready is set once what is served was trusted.
	ready atomic.Bool
	// trusted is the next authority, if it is in all bundles, and since when it was seen there.
	trusted *x509.Certificate
	since   time.Time
}

// Reconcile does the next step, if there is one now.
func (r *rotation) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	now := r.clock.Now()
	s, err := r.observe(ctx, r.cached)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.note(s, now)
	due := next(s.observed, r.policy, now)
	if due.act == rest {
		return wait(due.again, now), nil
	}
	// Caches lag behind each other. What is written is decided by what the API server has.
	if s, err = r.observe(ctx, r.api); err != nil {
		return reconcile.Result{}, err
	}
	if due = next(s.observed, r.policy, now); due.act == rest {
		return wait(due.again, now), nil
	}
	if err := r.do(ctx, s, due, now); apierrors.IsConflict(err) {
		r.log.V(1).Info("Another writer was first", "act", due.act, "reason", err.Error())
		return reconcile.Result{RequeueAfter: time.Second}, nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: time.Second}, nil // the watch is faster, as a rule
}

// wait looks again at a time, and after the longest wait.
func wait(again, now time.Time) reconcile.Result {
	return reconcile.Result{RequeueAfter: min(max(again.Sub(now), time.Millisecond), longest)}
}

// note remembers what follows from s: whether this replica is ready, and since when the next authority is trusted.
func (r *rotation) note(s *seen, now time.Time) {
	if !r.ready.Load() && s.serves(s.memory, now) {
		r.ready.Store(true)
	}
	switch {
	case s.next == nil || !s.trustedBy([]*x509.Certificate{s.next.certificate}):
		r.trusted, s.trustedSince = nil, time.Time{}
	case r.trusted == nil || !r.trusted.Equal(s.next.certificate):
		r.trusted, r.since, s.trustedSince = s.next.certificate, now, now
	}
}

var errNotTrusted = errors.New("the CA is not in the webhook configurations yet")

// check is nil once this replica serves with a certificate that the API server was told to trust.
func (r *rotation) check() error {
	if !r.ready.Load() {
		return errNotTrusted
	}
	return nil
}

// do writes what due says.
func (r *rotation) do(ctx context.Context, s *seen, due step, now time.Time) error {
	var err error
	switch due.act {
	case publish, withdraw:
		err = r.writeConfigurations(ctx, s, due.act, now)
	default:
		err = r.writeSecret(ctx, s, due.act, now)
	}
	if err != nil {
		return fmt.Errorf("certificates: %s, for %s: %w", due.act, due.why, err)
	}
	r.log.Info("Rotated certificates", "act", due.act, "reason", due.why)
	return nil
}
