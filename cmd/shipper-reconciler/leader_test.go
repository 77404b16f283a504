// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/process"
	testfleet "shipper.dev/shipper/test/fleet"
)

// candidate is a reconciler that may become the leader.
type candidate struct {
	leads chan struct{} // closed once it leads
	stop  context.CancelFunc
	ended chan error
}

// stand starts a candidate that counts itself in acting while it leads.
func stand(t *testing.T, o *options, acting *atomic.Int32) *candidate {
	t.Helper()
	what, err := o.process()
	if err != nil {
		t.Fatal(err)
	}
	mgr, _, err := process.NewManager(what)
	if err != nil {
		t.Fatal(err)
	}
	c := &candidate{leads: make(chan struct{}), ended: make(chan error, 1)}
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if acting.Add(1) > 1 {
			return errors.New("two act at the same time")
		}
		close(c.leads)
		<-ctx.Done()
		acting.Add(-1)
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, c.stop = context.WithCancel(t.Context())
	go func() { c.ended <- mgr.Start(ctx) }()
	return c
}

// awaitLead waits until a candidate leads.
func (c *candidate) awaitLead(t *testing.T) {
	t.Helper()
	select {
	case <-c.leads:
	case err := <-c.ended:
		t.Fatalf("it ended with %v", err)
	case <-time.After(time.Minute):
		t.Fatal("it does not lead")
	}
}

// end stops a candidate in order.
func (c *candidate) end(t *testing.T) {
	t.Helper()
	c.stop()
	if err := <-c.ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// cluster is a management cluster with a namespace for Shipper, and its administrator.
func cluster(t *testing.T) (*testfleet.Cluster, client.Client) {
	t.Helper()
	f, err := testfleet.Start(t.Context(), testfleet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	})
	admin, err := f.Management.Client(scheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shipper.SystemNamespace}}
	if err := admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return f.Management, admin
}

// flags are those of a candidate.
func flags(t *testing.T, in *testfleet.Cluster, more ...string) *options {
	t.Helper()
	o, err := parse(append(more, "--kubeconfig", in.Kubeconfig, "--health-addr", "0", "--metrics-addr", "0"))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOneLeadsAndTheNextTakesOverAtOnce(t *testing.T) {
	management, admin := cluster(t)
	var acting atomic.Int32
	o := flags(t, management)
	first, second := stand(t, o, &acting), stand(t, o, &acting)
	select {
	case <-first.leads:
	case <-second.leads:
		first, second = second, first
	case <-time.After(time.Minute):
		t.Fatal("no candidate leads")
	}
	led := holder(t, admin)
	first.end(t)
	if now := holder(t, admin); now == led {
		t.Errorf("%q holds the Lease although it has ended: the second waits until it runs out", now)
	}
	second.awaitLead(t)
	second.end(t)
}

// holder is the identity in the Lease, empty if it was given up.
func holder(t *testing.T, admin client.Client) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: shipper.SystemNamespace, Name: process.LeaseName}, lease); err != nil {
		t.Fatal(err)
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// TestAKilledLeaderLeadsAgainAtOnce starts with a Lease of a process that was killed before it could release it.
func TestAKilledLeaderLeadsAgainAtOnce(t *testing.T) {
	management, admin := cluster(t)
	now := &metav1.MicroTime{Time: time.Now().Truncate(time.Microsecond)}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: shipper.SystemNamespace, Name: process.LeaseName},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("killed"), LeaseDurationSeconds: ptr.To(int32(process.LeaseDuration / time.Second)),
			AcquireTime: now, RenewTime: now,
		},
	}
	if err := admin.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	var acting atomic.Int32
	again := stand(t, flags(t, management, "--identity", "killed"), &acting)
	again.awaitLead(t)
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(lease), lease); err != nil {
		t.Fatal(err)
	}
	if !lease.Spec.AcquireTime.Time.Equal(now.Time) {
		t.Errorf("it acquired the Lease at %s: it waited for its own one of %s to run out", lease.Spec.AcquireTime, now)
	}
	again.end(t)
}
