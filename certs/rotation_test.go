// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var secretName = types.NamespacedName{Namespace: "shipper-system", Name: "shipper-webhook-cert"}

// stored is a client of a store with two webhook configurations with two webhooks each, and no Secret.
func stored(t *testing.T, funcs interceptor.Funcs) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	name := metav1.ObjectMeta{Name: "shipper.booking.com"}
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(funcs).WithObjects(
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: name, Webhooks: make([]admissionv1.ValidatingWebhook, 2)},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: name, Webhooks: make([]admissionv1.MutatingWebhook, 2)},
	).Build()
}

// process is the rotation of a new process.
func process(c client.WithWatch, clock *testingclock.FakePassiveClock) *rotation {
	r := &rotation{
		policy: testPolicy, secret: secretName, name: "shipper.booking.com",
		cached: c, api: c, writer: c, clock: clock, log: logr.Discard(),
	}
	served := &secret{log: logr.Discard()}
	r.serving = served.leaf
	var found corev1.Secret
	if err := c.Get(context.Background(), secretName, &found); err == nil {
		served.take(&found)
	}
	return r
}

// rotate runs one process after another, each until its first write, until none is due.
func rotate(t *testing.T, c client.WithWatch, clock *testingclock.FakePassiveClock) *rotation {
	t.Helper()
	for range 20 {
		r := process(c, clock)
		result, err := r.Reconcile(t.Context(), reconcile.Request{})
		if err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if err == nil && result.RequeueAfter > time.Second {
			return r
		}
	}
	t.Fatal("it never rests")
	return nil
}

var errKilled = errors.New("killed")

// killing ends a process after each of its writes: the write succeeds, but the process gets an error.
func killing() interceptor.Funcs {
	return interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return errors.Join(c.Patch(ctx, o, p, opts...), errKilled)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return errors.Join(c.Apply(ctx, o, opts...), errKilled)
		},
	}
}

func TestProcessesThatAreKilledAtAnyWriteGetThere(t *testing.T) {
	for sentence, funcs := range map[string]interceptor.Funcs{"one process": {}, "killed at each write": killing()} {
		t.Run(sentence, func(t *testing.T) {
			c, clock := stored(t, funcs), testingclock.NewFakePassiveClock(birth)
			r := rotate(t, c, clock)
			if err := r.check(); err != nil {
				t.Error(err)
			}
			s, err := r.observe(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]any{"bundles": len(s.bundles), "serves": s.serves(s.leaf(), birth), "end": s.leaf().NotAfter}
			for key := range s.secret.Data {
				got[key] = true
			}
			want := map[string]any{
				"bundles": 4, "serves": true, "end": birth.Add(30 * day),
				"ca.crt": true, "ca.key": true, "tls.crt": true, "tls.key": true,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("afterwards (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothingIsWrittenThatIsAlreadySo(t *testing.T) {
	writes := 0
	c := stored(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			writes++
			return c.Patch(ctx, o, p, opts...)
		},
	})
	clock := testingclock.NewFakePassiveClock(birth)
	rotate(t, c, clock)
	if writes != 4 { // the next authority, two configurations, the promotion
		t.Errorf("%d writes to begin with", writes)
	}
	writes = 0
	result, err := process(c, clock).Reconcile(t.Context(), reconcile.Request{})
	if want := (reconcile.Result{RequeueAfter: longest}); err != nil || result != want {
		t.Errorf("looks again: %v, %v; want %v", result, err, want)
	}
	clock.SetTime(birth.Add(20*day - time.Minute))
	result, err = process(c, clock).Reconcile(t.Context(), reconcile.Request{})
	if want := (reconcile.Result{RequeueAfter: time.Minute}); err != nil || result != want {
		t.Errorf("looks again before it is time: %v, %v; want %v", result, err, want)
	}
	if writes != 0 {
		t.Errorf("%d writes at rest", writes)
	}
}

// A replica writes a new authority to the Secret before the configurations. Reading in that order, another replica could take
// it for an unknown one and remove it.
func TestTheSecretIsReadLast(t *testing.T) {
	var got []string
	c := stored(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			got = append(got, fmt.Sprintf("%T", o))
			return c.Get(ctx, key, o, opts...)
		},
	})
	r := process(c, testingclock.NewFakePassiveClock(birth))
	got = nil
	if _, err := r.observe(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	want := []string{"*v1.ValidatingWebhookConfiguration", "*v1.MutatingWebhookConfiguration", "*v1.Secret"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reads (-want +got):\n%s", diff)
	}
}

// lagging has an old Secret, as a delayed cache does.
type lagging struct {
	client.Reader
	old *corev1.Secret
}

func (l lagging) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if found, ok := o.(*corev1.Secret); ok {
		l.old.DeepCopyInto(found)
		return nil
	}
	return l.Reader.Get(ctx, key, o, opts...)
}

func TestACacheThatLagsTakesNothingAway(t *testing.T) {
	c, clock := stored(t, interceptor.Funcs{}), testingclock.NewFakePassiveClock(birth)
	rotate(t, c, clock)
	var old corev1.Secret
	if err := c.Get(t.Context(), secretName, &old); err != nil {
		t.Fatal(err)
	}
	withoutKey := old.DeepCopy()
	delete(withoutKey.Data, caKeyKey)
	if err := c.Update(t.Context(), withoutKey); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the next authority is created, and published
		if _, err := process(c, clock).Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	behind := process(c, clock)
	behind.cached = lagging{c, &old}
	if _, err := behind.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	s, err := behind.observe(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if s.next == nil || len(s.bundles[0]) != 2 || !s.trustedBy(s.trusted(birth)) {
		t.Errorf("the next authority is not trusted any more: %d authorities are", len(s.bundles[0]))
	}
}
