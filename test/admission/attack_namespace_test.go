// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/env"
)

// A user with every right in one namespace reaches no other, neither by name nor by references between objects.
func TestOneNamespaceDoesNotReachAnother(t *testing.T) {
	ours, theirs := namespace(t), namespace(t)
	r, b, m := rollOut(t, ours), rollOut(t, theirs), newAttacker(t, ours)
	stop := ask.Block(theirs + "/theirs")
	stop.CreationTimestamp = metav1.Time{}
	create(t, admin, stop)
	global := block(t, shipper.GlobalBlocksNamespace)
	everywhere := global.Namespace + "/" + global.Name
	app := m.on(r.app)
	attacks := map[string]attack{
		"makes a block for all": unreached(func(ctx context.Context) error {
			o := sibling(stop)
			o.SetNamespace(shipper.GlobalBlocksNamespace)
			return m.Create(ctx, o)
		}),
		"lifts a block for all": unreached(m.on(global).remove()),
		"overrides what does not bear here": {
			app.merge(annotations(override + `"` + theirs + `/theirs"`)), refused{422, "does not stop rollouts in namespace " + ours},
		},
		"overrides without the right": {
			app.merge(annotations(override + `"` + everywhere + `"`)), refused{403, "may not override RolloutBlock " + everywhere},
		},
		"says that an object is there": {app.merge(`{"metadata":{"namespace":"` + theirs + `"}}`), refused{400, "namespace"}},
	}
	for _, o := range []client.Object{b.app, b.rel, b.capacity, b.traffic, b.install, stop} {
		v, kind := m.on(o), kindOf(o)
		labelled := client.RawPatch(types.MergePatchType, []byte(labels(`"a":"b"`)))
		for what, try := range map[string]attempt{
			"reads":               func(ctx context.Context) error { return m.Get(ctx, client.ObjectKeyFromObject(o), copyOf(o)) },
			"creates":             v.create(),
			"updates":             func(ctx context.Context) error { return m.Update(ctx, copyOf(o)) },
			"patches":             func(ctx context.Context) error { return m.Patch(ctx, copyOf(o), labelled) },
			"reports on":          func(ctx context.Context) error { return m.Status().Update(ctx, copyOf(o)) },
			"deletes":             v.remove(),
			"rehearses to delete": v.remove(client.DryRunAll),
		} {
			attacks[what+" a "+kind] = unreached(try)
		}
	}
	comesToNothing(t, attacks, ours, theirs)
}

// unreached is an attack that RBAC must refuse.
func unreached(try attempt) attack {
	return attack{try: func(ctx context.Context) error { return denied(try(ctx)) }}
}

// The garbage collector deletes objects whose owner is gone. An owner that a user adds must not make it delete an object
// despite a block.
func TestAnOwnerOfOnesOwnDoesNotLeadAroundABlock(t *testing.T) {
	ns := namespace(t)
	r, m := rollOut(t, ns), newAttacker(t, ns)
	armed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "armed"}}
	create(t, admin, armed)
	if err := m.on(r.app).merge(owners(owner("v1", "ConfigMap", armed.Name, armed.UID)))(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := block(t, ns)
	for _, o := range []client.Object{r.app, r.rel} {
		gone := owner("v1", "ConfigMap", "gone", "00000000-0000-0000-0000-000000000000")
		if err := m.on(o).merge(owners(gone))(t.Context()); !apierrors.IsForbidden(err) {
			t.Errorf("under block %s an owner is added to %T: %v", b.Name, o, err)
		}
	}
	if err := admin.Delete(t.Context(), armed); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, "the garbage collector to be refused", func(context.Context) error {
		return deletionRefused(t, ns, "applications", r.app.Name)
	})
	for _, o := range []client.Object{r.app, r.rel} {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Errorf("under block %s: %v", b.Name, err)
		}
	}
}

// deletionRefused returns nil if the audit log has a refused deletion of the object.
func deletionRefused(t *testing.T, namespace, resource, name string) error {
	t.Helper()
	for event := range audits(t, namespace) {
		if event.Verb == "delete" && event.ObjectRef.Resource == resource && event.ObjectRef.Name == name &&
			event.ResponseStatus.Code == http.StatusForbidden {
			return nil
		}
	}
	return fmt.Errorf("there is no refused deletion of %s %s/%s", resource, namespace, name)
}
