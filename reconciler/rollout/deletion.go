// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/events"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/rollout/blocks"
)

// deletionHeld is the reason of the event about a deletion that RolloutBlocks hold.
const deletionHeld = "DeletionHeld"

// deletionPlan is what one pass does for an Application that is being deleted. Its Releases go first, and its finalizer last, so that
// nothing it runs disappears while a block holds the deletion.
type deletionPlan struct {
	// held says which blocks hold the deletion; empty when none do. Nothing else is done then.
	held string
	// remove are the Releases to be deleted, letGo those to be rid of Shipper's finalizer.
	remove, letGo []*shipper.Release
	// over is true when the Application itself may go.
	over bool
}

// planDeletion is pure. Rels carry the Application's label, its own or not.
func planDeletion(app *shipper.Application, rels []*shipper.Release, held string) deletionPlan {
	if held != "" {
		return deletionPlan{held: held}
	}
	// Another finalizer could be removed after a block has come into effect. The garbage collector removes its own when dependents are gone.
	others := slices.DeleteFunc(slices.Clone(app.Finalizers), func(f string) bool {
		return f == shipper.RolloutFinalizer || f == metav1.FinalizerDeleteDependents
	})
	if len(others) > 0 {
		return deletionPlan{}
	}
	var p deletionPlan
	own := false
	for _, rel := range rels {
		if !stamp.OwnedBy(rel, app) {
			continue
		}
		own = true
		switch {
		case rel.DeletionTimestamp.IsZero():
			p.remove = append(p.remove, rel)
		case onlyShipperKeeps(rel):
			p.letGo = append(p.letGo, rel)
		}
	}
	p.over = !own && onlyShipperKeeps(app)
	return p
}

// onlyShipperKeeps reports whether an object goes when Shipper's finalizer does.
func onlyShipperKeeps(o client.Object) bool {
	return slices.Equal(o.GetFinalizers(), []string{shipper.RolloutFinalizer})
}

// finish does what is left to do for an Application that is being deleted.
func (r *pass) finish(ctx context.Context, app *shipper.Application) error {
	key := client.ObjectKeyFromObject(app)
	version, done := r.finished.Load(key)
	if done && version == app.ResourceVersion || !controllerutil.ContainsFinalizer(app, shipper.RolloutFinalizer) {
		return nil
	}
	bearing, err := blocks.Bearing(ctx, r.client, app.Namespace, r.global)
	if err != nil {
		return err
	}
	h, err := r.histories.Live(ctx, app) // what cannot be undone is not decided by a cache
	if err != nil {
		return err
	}
	s := &scope{app: app, history: h, blocks: bearing}
	if err := r.observeClusters(ctx, s); err != nil {
		return err
	}
	held := ""
	if v := s.view(r.now).OfDeletion(); v.Blocked() {
		held = v.Message()
	}
	ordered, broken := stamp.SortByGeneration(stamp.Own(app, h.All))
	p := planDeletion(app, slices.Concat(broken, ordered), held) // the newest goes last: its hooks are those that count
	if p.held != "" {
		return cmp.Or(r.holdDeleteHooks(ctx, app), r.reportHeld(ctx, app, p.held))
	}
	if len(p.remove)+len(p.letGo) > 0 { // a foreground deletion or that of the namespace has deleted them already
		if waits, err := r.runDeleteHooks(ctx, app, ordered); err != nil || waits {
			return err
		}
	}
	for _, rel := range p.remove {
		err := r.client.Delete(ctx, rel, client.Preconditions{UID: &rel.UID})
		if r.wrote(rel); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting release %s/%s: %w", rel.Namespace, rel.Name, err)
		}
	}
	for _, rel := range p.letGo {
		if err := r.removeFinalizer(ctx, rel); err != nil {
			return err
		}
	}
	if !p.over {
		return nil
	}
	if waits, err := r.awaitDeleteHooks(ctx, app); err != nil || waits {
		return err
	}
	err = r.removeFinalizer(ctx, app)
	if err == nil {
		r.finished.Store(key, app.ResourceVersion)
	}
	return err
}

// finishOrphans lets Releases go whose Application is gone: they were deleted, and no block holds them.
func (r *pass) finishOrphans(ctx context.Context, key client.ObjectKey) error {
	rels, err := r.histories.Releases(ctx, key)
	if err != nil {
		return err
	}
	rels = slices.DeleteFunc(rels, func(rel *shipper.Release) bool {
		return rel.DeletionTimestamp.IsZero() || !onlyShipperKeeps(rel)
	})
	if len(rels) == 0 {
		return nil
	}
	gone := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	s := &scope{app: gone}
	if s.blocks, err = blocks.Bearing(ctx, r.client, key.Namespace, r.global); err != nil {
		return err
	}
	if err := r.observeClusters(ctx, s); err != nil {
		return err
	}
	for _, rel := range rels {
		kept := s.view(r.now).HoldDeleted([]strategy.Release{{Release: rel}})
		if kept[0].Held != "" {
			continue
		}
		if err := r.removeFinalizer(ctx, rel); err != nil {
			return err
		}
	}
	return nil
}

// removeFinalizer removes Shipper's finalizer, unless the object was changed since it was read.
func (r *pass) removeFinalizer(ctx context.Context, o client.Object) error {
	is, ok := o.DeepCopyObject().(client.Object)
	if !ok || !controllerutil.RemoveFinalizer(is, shipper.RolloutFinalizer) {
		return nil
	}
	err := r.client.Patch(ctx, is, onlyIfUnchanged(o))
	if r.wrote(o); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("letting %s/%s go: %w", o.GetNamespace(), o.GetName(), err)
	}
	return nil
}

// reportHeld says in the Application, and on its namespace when that is going too, what holds the deletion.
func (r *pass) reportHeld(ctx context.Context, app *shipper.Application, held string) error {
	message := "the deletion is held: " + held
	is := *app.Status.DeepCopy()
	is.ObservedGeneration = app.Generation
	is.Conditions = shipper.SetCondition(events.Without(is.Conditions, shipper.ApplicationDeleting), shipper.Condition{
		Type: shipper.ApplicationBlocked, Status: corev1.ConditionTrue, Reason: shipper.RolloutsBlocked,
		Message: report.Shorten(message, maxMessage),
	}, r.now)
	was := shipper.FindCondition(app.Status.Conditions, shipper.ApplicationBlocked)
	news := was == nil || was.Message != report.Shorten(message, maxMessage)
	if err := r.persistApplication(ctx, app, is); err != nil || !news {
		return err
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.live.Get(ctx, client.ObjectKey{Name: app.Namespace}, namespace); err != nil {
		return fmt.Errorf("reading namespace %s: %w", app.Namespace, err)
	}
	if namespace.DeletionTimestamp != nil {
		report.Emit(r.recorder, namespace, []report.Event{{
			Type: corev1.EventTypeWarning, Reason: deletionHeld, Action: "Hold " + app.Name,
			Note: fmt.Sprintf("Application %s is kept: %s", app.Name, held),
		}})
	}
	return nil
}
