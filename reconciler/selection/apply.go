// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/retry"
)

// permitted asks the webhook whether the user who selected may still place it, before anything of it is read. Content is kept where those
// who may read the Application's namespace see it.
func (r *Reconciler) permitted(ctx context.Context, app *shipper.Application) error {
	asking := app.DeepCopy()
	asking.Spec.Template.Pins = &shipper.Pins{Resources: shipper.AskingPin}
	err := r.client.Patch(ctx, asking, client.MergeFromWithOptions(app, client.MergeFromWithOptimisticLock{}), client.DryRunAll,
		client.FieldOwner(shipper.FieldOwner))
	switch {
	case apierrors.HasStatusCause(err, shipper.SelectionAllowed):
		return nil
	case err == nil:
		return problemf(shipper.SelectionNotAllowed, retry.Recheck, "whether %s may place the resources was not judged: the API server does not "+
			"ask Shipper's webhook; `shipperctl doctor` says why. What is placed stays", chooser(app))
	}
	return refused(app, fmt.Errorf("asking whether the content of Application %s/%s may be taken: %w", app.Namespace, app.Name, err),
		r.hasBlock(ctx, err))
}

// pin stores content and then pins the template to it. After an error between the two, the next pass finds what is stored or deletes it. It
// changes app to what was written. first is the time of the change that made this pass; zero if there was none.
func (r *Reconciler) pin(
	ctx context.Context, app *shipper.Application, rels []*shipper.Release, content *content, is shipper.TakenResources, first time.Time,
) error {
	next, err := planPin(app, content.digest, is)
	if err != nil {
		return err
	}
	if next == nil && app.Spec.Template.Pins.Digest() != content.digest {
		return nil // a rollback or an abort stays, and needs no copy of what it has left
	}
	if err := r.snapshots.Keep(ctx, app, rels, content.parts); err != nil {
		return err
	}
	if next == nil {
		return nil
	}
	pinned := app.Spec.Template.Pins.Digest() != content.digest
	was := app.DeepCopy()
	next.DeepCopyInto(app)
	err = r.client.Patch(ctx, app, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(shipper.FieldOwner))
	if err != nil {
		was.DeepCopyInto(app)
		return refused(app, fmt.Errorf("pinning Application %s/%s to its content: %w", app.Namespace, app.Name, err), r.hasBlock(ctx, err))
	}
	if !pinned {
		return nil
	}
	if !first.IsZero() {
		r.lag.Observe(r.clock.Since(first).Seconds())
	}
	report.Emit(r.recorder, app, []report.Event{{
		Type: corev1.EventTypeNormal, Reason: shipper.ApplicationResourcesSelected, Action: "Select", Note: describe(content),
	}})
	return nil
}

// hasBlock reports whether the cache has the RolloutBlock that a refusal names.
func (r *Reconciler) hasBlock(ctx context.Context, err error) bool {
	key, ok := blockKey(block.RefusedBy(err))
	return ok && r.client.Get(ctx, key, &shipper.RolloutBlock{}) == nil
}

// blockKey parses namespace/name.
func blockKey(text string) (types.NamespacedName, bool) {
	names, err := block.ParseOverrides(text)
	if err != nil || len(names) != 1 {
		return types.NamespacedName{}, false
	}
	return names[0], true
}

// report writes the condition ResourcesSelected for a problem; nil removes it, for an Application without resources.
func (r *Reconciler) report(ctx context.Context, app *shipper.Application, p *problem) error {
	if p == nil {
		return r.write(ctx, app, nil)
	}
	c := &shipper.Condition{
		Type: shipper.ApplicationResourcesSelected, Status: corev1.ConditionFalse, Reason: p.reason,
		Message: report.Shorten(p.message, maxMessage),
	}
	return r.write(ctx, app, c)
}

// reportTaken writes the condition ResourcesSelected for content that was taken.
func (r *Reconciler) reportTaken(ctx context.Context, app *shipper.Application, content *content) error {
	message := describe(content)
	if pin := app.Spec.Template.Pins.Digest(); pin != content.digest {
		message += fmt.Sprintf("; the template has the digest %s since a rollback or an abort. It gets other content when that changes, or now: "+
			"kubectl annotate app %s -n %s --overwrite %s=<anything new>", short(pin), app.Name, app.Namespace,
			shipper.AppResourcesRefreshAnnotation)
	}
	return r.write(ctx, app, &shipper.Condition{
		Type: shipper.ApplicationResourcesSelected, Status: corev1.ConditionTrue, Message: report.Shorten(message, maxMessage),
	})
}

// write writes the condition ResourcesSelected, and no other: like the rollout reconciler it does nothing to a status that was changed
// meanwhile. A condition that becomes False or gets another reason makes an event.
func (r *Reconciler) write(ctx context.Context, app *shipper.Application, c *shipper.Condition) error {
	was := app.DeepCopy()
	before := shipper.FindCondition(was.Status.Conditions, shipper.ApplicationResourcesSelected)
	switch {
	case c == nil && before == nil:
		return nil
	case c == nil:
		app.Status.Conditions = nil
		for _, other := range was.Status.Conditions {
			if other.Type != shipper.ApplicationResourcesSelected {
				app.Status.Conditions = append(app.Status.Conditions, other)
			}
		}
	case before != nil && before.Status == c.Status && before.Reason == c.Reason && before.Message == c.Message:
		return nil
	default:
		app.Status.Conditions = shipper.SetCondition(was.Status.Conditions, *c, metav1.NewTime(r.clock.Now()))
	}
	err := r.client.Status().Patch(ctx, app, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(shipper.FieldOwner))
	if err != nil {
		return fmt.Errorf("writing the condition %s of Application %s/%s: %w", shipper.ApplicationResourcesSelected, app.Namespace, app.Name, err)
	}
	if c != nil && c.Reason != "" && (before == nil || before.Reason != c.Reason) {
		report.Emit(r.recorder, app, []report.Event{{
			Type: corev1.EventTypeWarning, Reason: c.Reason, Action: "Select", Note: c.Message,
		}})
	}
	return nil
}

// own are the Releases of an Application that are not those of an earlier one of its name.
func own(app *shipper.Application, rels []*shipper.Release) []*shipper.Release {
	var out []*shipper.Release
	for _, rel := range rels {
		if len(rel.OwnerReferences) == 0 || stamp.OwnedBy(rel, app) {
			out = append(out, rel)
		}
	}
	return out
}
