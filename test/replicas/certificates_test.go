// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/load"
)

// TestCertificates proves that certificates which the webhook makes itself are renewed, and their authority succeeded, without a request
// that fails: two replicas run, with certificates that live for seconds. It takes the place of the other replicas for its time.
func TestCertificates(t *testing.T) {
	rotate(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"no request fails while they rotate", noRequestFailsWhileTheyRotate},
		{"no request fails while an administrator rotates", noRequestFailsWhileAnAdministratorRotates},
		{"replicas recover from one that has ended", replicasRecoverFromOneThatHasEnded},
		{"a Pod that was off for a year recovers", aPodThatWasOffForAYearRecovers},
	} {
		t.Run(part.name, part.run)
	}
}

// perSecond is how many writes are asked for.
const perSecond = 100

// under runs do under load and fails when any write did, or any connection to a replica.
func under(t *testing.T, do func(*lookout)) {
	t.Helper()
	watch := newLookout(t.Context())
	writes := load.Start(t.Context(), world.Management, namespace(t, "certs-"), world.Charts.URL, perSecond)
	renewing, stop := context.WithCancel(t.Context())
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		renew(renewing, writes)
	}()
	defer func() {
		stop()
		<-renewed
		result := writes.Stop()
		watch.end(t)
		t.Logf("%d requests, the slowest took %s; connections %v", result.Requests, result.Longest, rotating.service.Taken())
		for i, f := range result.Failed[:min(len(result.Failed), 10)] {
			t.Errorf("failure %d of %d: %s", i+1, len(result.Failed), f)
		}
	}()
	do(watch)
}

// renew has the API server connect again every quarter of a second: it keeps connections, and would not see what is served
// for as long as they live.
func renew(ctx context.Context, writes *load.Load) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			writes.Pause(rotating.service.Renew)
		}
	}
}

// until waits for something to be so.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	env.Eventually(t, what, func(context.Context) error {
		if !so() {
			return errors.New("not yet")
		}
		return nil
	})
}

// The authority of before ends soon, and so does its certificate. In the time of this test two authorities follow it, and
// each signs more than one certificate, all by time alone.
func noRequestFailsWhileTheyRotate(t *testing.T) {
	plant(t, time.Now().Add(14*time.Second), time.Now().Add(6*time.Second))
	startRotating(t)
	under(t, func(watch *lookout) {
		until(t, "certificates of two other authorities, and three more", func() bool {
			leaves := watch.served()
			authorities := map[string]bool{}
			for _, leaf := range leaves {
				authorities[string(leaf.AuthorityKeyId)] = true
			}
			return len(authorities) >= 3 && len(leaves) >= 6
		})
		for i, r := range rotating.replicas {
			ends := r.ends(t)
			if left := time.Until(ends["serving"]); left <= 0 || left > certificateLifetime {
				t.Errorf("replica %d says that its certificate ends in %s", i+1, left)
			}
			if left := time.Until(ends["authority"]); left <= 0 || left > authorityLifetime {
				t.Errorf("replica %d says that its authority ends in %s", i+1, left)
			}
		}
	})
	for port, n := range rotating.service.Taken() {
		if n < 10 {
			t.Errorf("the replica at %d was connected to %d times", port, n)
		}
	}
}

// An administrator who takes something out of the Secret gets it made again, unnoticed.
func noRequestFailsWhileAnAdministratorRotates(t *testing.T) {
	startRotating(t)
	under(t, func(watch *lookout) {
		for _, step := range []struct {
			sentence string
			do       func(context.Context) error
		}{
			{"the certificate", func(ctx context.Context) error { return take(ctx, "tls.crt") }},
			{"the key of the authority", func(ctx context.Context) error { return take(ctx, "ca.key") }},
			{"the secret", func(ctx context.Context) error {
				s, err := certificateSecret(ctx)
				return errors.Join(err, world.Management.Delete(ctx, s))
			}},
		} {
			var before []*x509.Certificate
			until(t, "connections", func() bool {
				before = watch.served()
				return len(before) > 0
			})
			if err := step.do(t.Context()); err != nil {
				t.Fatal(err)
			}
			until(t, "another certificate after "+step.sentence+" was taken away", func() bool {
				return len(watch.served()) > len(before)
			})
		}
	})
}

// mayNotWrite keeps replicas from writing Secrets, and returns what lets them again.
func mayNotWrite(ctx context.Context) (again func(context.Context) error, err error) {
	var role rbacv1.Role
	key := client.ObjectKey{Namespace: "shipper-system", Name: "shipper:management-cluster"}
	if err := world.Management.Get(ctx, key, &role); err != nil {
		return nil, err
	}
	rules := role.DeepCopy().Rules
	for i, rule := range role.Rules {
		if slices.Contains(rule.Resources, "secrets") {
			role.Rules[i].Verbs = []string{"get", "list", "watch"}
		}
	}
	return func(ctx context.Context) error {
		role.Rules = rules
		return world.Management.Update(ctx, &role)
	}, world.Management.Update(ctx, &role)
}

// While no account may write it, the certificate ends. The result is what docs/certificates.md says, and once it
// may be written again nothing more has to be done.
func replicasRecoverFromOneThatHasEnded(t *testing.T) {
	startRotating(t)
	ns := namespace(t, "certs-")
	again, err := mayNotWrite(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := again(context.Background()); err != nil {
			t.Error(err)
		}
	})
	write := func(ctx context.Context) error {
		rotating.service.Renew()
		return load.Once(ctx, world.Management, ns, world.Charts.URL)
	}
	var seen string
	env.Eventually(t, "writes to fail", func(ctx context.Context) error {
		err := write(ctx)
		switch {
		case err == nil:
			return errors.New("they succeed")
		case errors.Is(err, context.DeadlineExceeded):
			return err // no answer came, of which nothing can be said
		}
		seen = err.Error()
		return nil
	})
	if !strings.Contains(seen, "tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time ") {
		t.Errorf("what is seen: %s", seen)
	}
	t.Logf("what is seen: %s", seen)
	for i, r := range rotating.replicas {
		if left := time.Until(r.ends(t)["serving"]); left > 0 {
			t.Errorf("replica %d says that its certificate ends in %s", i+1, left)
		}
	}
	began := time.Now()
	if err := again(t.Context()); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, "writes to succeed", write)
	t.Logf("recovered within %s", time.Since(began))
}

// Everything has ended a year ago: authority and certificate, in the Secret and in the webhook configurations.
func aPodThatWasOffForAYearRecovers(t *testing.T) {
	plant(t, time.Now().AddDate(-1, 0, 0), time.Now().AddDate(-1, 0, 0))
	ns := namespace(t, "certs-")
	began := time.Now()
	startRotating(t)
	env.Eventually(t, "a write to succeed", func(ctx context.Context) error {
		return load.Once(ctx, world.Management, ns, world.Charts.URL)
	})
	t.Logf("recovered %s after the first process was started", time.Since(began))
	trusted, err := bundles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, bundle := range trusted {
		if n := len(parse(bundle)); n != 1 {
			t.Errorf("the bundle of webhook %d has %d authorities", i, n)
		}
	}
}
