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

// longest bounds the wait for a time: clocks are set, and machines sleep.
const longest = time.Hour

// rotation maintains the Secret and the webhook configurations. Every replica runs one; the first write wins, and the resource
// version makes the API server refuse the others.
type rotation struct {
	policy policy
	secret types.NamespacedName
	name   string // of the webhook configurations

	cached client.Reader
	api    client.Reader // reads from the API server
	writer client.Writer
	clock  clock.PassiveClock
	log    logr.Logger

	// serving is the certificate that this process serves with, nil for none.
	serving func() *x509.Certificate
	// ready is set once the API server trusted the serving certificate.
	ready atomic.Bool
	// trusted is the next authority if it is in all bundles, and since is when it was first seen there.
	trusted *x509.Certificate
	since   time.Time
}

// Reconcile does the next write, if one is due.
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
	// Caches are not consistent with each other: decide from the API server's state before writing.
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
	return reconcile.Result{RequeueAfter: time.Second}, nil // the watch usually is faster
}

// wait requeues at a time, at most longest from now.
func wait(again, now time.Time) reconcile.Result {
	return reconcile.Result{RequeueAfter: min(max(again.Sub(now), time.Millisecond), longest)}
}

// note updates ready, and since when the next authority is trusted.
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

// check is nil once the webhook configurations trust this replica's serving certificate.
func (r *rotation) check() error {
	if !r.ready.Load() {
		return errNotTrusted
	}
	return nil
}

// do does the writes of due.
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
