// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/env"
)

// differs returns nil if got equals want.
func differs[T any](want, got T) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return errors.New("(-want +got):\n" + diff)
	}
	return nil
}

// gone returns nil if o does not exist.
func gone(ctx context.Context, o client.Object) error {
	err := admin.Get(ctx, client.ObjectKeyFromObject(o), o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%T %s is still there (%w)", o, o.GetName(), err)
}

func TestGarbageIsCollectedUnderABlock(t *testing.T) {
	t.Parallel()
	r := rollOut(t, namespace(t))
	b := block(t, r.app.Namespace)
	checkRefused(t, as(t, "dev").Delete(t.Context(), r.app.DeepCopy()), refused{403, "rollouts blocked by"})
	ask.Overriding(b.Namespace + "/" + b.Name)(r.app) // the Release does not override
	if err := admin.Update(t.Context(), r.app); err != nil {
		t.Fatal(err)
	}
	if err := as(t, "dev").Delete(t.Context(), r.app); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{r.app, r.rel, r.capacity, r.traffic, r.install} {
		env.Eventually(t, "what the Application owned to be collected", func(ctx context.Context) error { return gone(ctx, o) })
	}
}

func TestDependentsAreLeftBehindWhenThatIsAsked(t *testing.T) {
	t.Parallel()
	r := rollOut(t, namespace(t))
	if err := as(t, "dev").Delete(t.Context(), r.app, client.PropagationPolicy("Orphan")); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, "the Application to go", func(ctx context.Context) error { return gone(ctx, r.app) })
	if err := as(t, "dev").Delete(t.Context(), r.rel.DeepCopy(), client.PropagationPolicy("Orphan")); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, "the Release to go", func(ctx context.Context) error { return gone(ctx, r.rel.DeepCopy()) })
	for _, o := range []client.Object{r.capacity, r.traffic, r.install} {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		if owners := o.GetOwnerReferences(); len(owners) > 0 {
			t.Errorf("%T is still owned by %v", o, owners)
		}
	}
}

func TestANamespaceUnderABlockGoesWhenItsApplicationsMay(t *testing.T) {
	ns := namespace(t)
	r := rollOut(t, ns)
	dns := block(t, shipper.GlobalBlocksNamespace)
	checkRefused(t, as(t, "dev").Delete(t.Context(), r.rel.DeepCopy(), client.DryRunAll), refused{403, dns.Name})
	o := &corev1.Namespace{}
	o.Name = ns
	key := shipper.GlobalBlocksNamespace + "/" + dns.Name
	checkRefused(t, admin.Delete(t.Context(), o), refused{403, "with namespace " + ns + " would go Application super-server: " +
		"rollouts blocked by: " + key})
	ask.Overriding(key)(r.app) // the Release does not override
	if err := admin.Update(t.Context(), r.app); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, "the webhook to know the override", func(ctx context.Context) error { return admin.Delete(ctx, o, client.DryRunAll) })
	if err := admin.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, "the namespace to go", func(ctx context.Context) error { return gone(ctx, o) })
}

// A tenant with the role edit adds an owner to an Application before a block and deletes the owner during it.
func TestThePolicyAloneHoldsAnApplicationWhoseOwnerIsDeleted(t *testing.T) {
	ns := namespace(t)
	r, m := rollOut(t, ns), newAttacker(t, ns)
	armed := &corev1.ConfigMap{}
	armed.Namespace, armed.Name = ns, "armed"
	if err := m.Create(t.Context(), armed); err != nil {
		t.Fatal(err)
	}
	if err := m.on(r.app).merge(owners(owner("v1", "ConfigMap", armed.Name, armed.UID)))(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := block(t, shipper.GlobalBlocksNamespace)
	b.Spec.OverridePolicy = shipper.RolloutBlockNobody
	if err := admin.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	stopWebhook(t)
	env.Eventually(t, "the policy to know the block", func(ctx context.Context) error {
		err := as(t, collector).Delete(ctx, r.app.DeepCopy(), client.DryRunAll)
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("not refused: %w", errors.Join(err, errors.New("waiting")))
		}
		return nil
	})
	if err := m.Delete(t.Context(), armed); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, "the garbage collector to be refused", func(context.Context) error {
		return deletionRefused(t, ns, "applications", r.app.Name)
	})
	for _, o := range []client.Object{r.app, r.rel, r.capacity, r.traffic, r.install} {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || o.GetDeletionTimestamp() != nil {
			t.Errorf("%T under block %s: %v, deleted at %v", o, b.Name, err, o.GetDeletionTimestamp())
		}
	}
}

// stopWebhook stops the webhook until the test ends.
func stopWebhook(t *testing.T) {
	t.Helper()
	if err := gate.stop(); err != nil {
		t.Fatalf("stopping the webhook: %v", err)
	}
	t.Cleanup(func() {
		if err := gate.start(context.Background()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTheGateIsClosedWhileTheWebhookIsDown(t *testing.T) {
	ns, repo := namespace(t), startRepository(t, "0.0.1")
	t.Cleanup(func() {
		if err := admin.Create(context.Background(), application(ns, repo)); err != nil {
			t.Errorf("the webhook serves again, but: %v", err)
		}
	})
	stopWebhook(t)
	err := admin.Create(t.Context(), application(ns, repo))
	checkRefused(t, err, refused{500, "failed calling webhook"})
	create(t, admin, application(shipper.SystemNamespace, repo)) // the API server calls no webhook for Shipper's own namespace
	app := application(ns, repo)
	app.Status.History = []string{"x"}
	if err := admin.Status().Update(t.Context(), app); !apierrors.IsNotFound(err) {
		t.Errorf("a write of a status was refused: %v", err)
	}
}
