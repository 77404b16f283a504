// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
)

func (w *Webhook) validateCreate(ctx context.Context, req *admission.Request, a *response.Response, now *object) error {
	if err := w.mayMake(ctx, req, now.Name); err != nil {
		return err
	}
	rel, err := w.release(ctx, now)
	if err != nil {
		return err
	}
	if err := response.Invalidate(w.Kind.Name, now.Name, validateOwner(now, rel)); err != nil {
		return err
	}
	return w.judge(a, now.Name, rel, changeOf(now.Spec, nil), false)
}

func (w *Webhook) validateUpdate(
	ctx context.Context, req *admission.Request, a *response.Response, now, old *object,
) error {
	if err := w.keepOwner(ctx, now, old); err != nil {
		return err
	}
	state := protected.Metadata{
		Kind: w.Kind.Name, Resource: w.Kind.Resource,
		Labels: keys(old.Labels, now.Labels), Annotations: slices.DeleteFunc(keys(old.Annotations, now.Annotations), foreign),
	}
	if err := w.Guard.Check(ctx, req, state, &old.ObjectMeta, &now.ObjectMeta); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(now.Spec, old.Spec) {
		return nil
	}
	if err := w.onlyReconciler(req, now.Name); err != nil {
		return err
	}
	rel, err := w.release(ctx, now)
	if err != nil || rel == nil { // a target that outlives its Release is being emptied, not rolled out
		return err
	}
	return w.judge(a, now.Name, rel, changeOf(now.Spec, old.Spec), false)
}

// keys are those of both maps. All labels of a target matter: they select the Release's Pods and the Application's traffic, and
// installed objects get the others, selectors included.
func keys(a, b map[string]string) []string {
	all := maps.Clone(a)
	if all == nil {
		return slices.Sorted(maps.Keys(b))
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// foreign reports whether an annotation is not one of Shipper's.
func foreign(key string) bool { return !strings.HasPrefix(key, shipper.GroupName+"/") }

// keepOwner refuses to change the reference to the Release, except to correct it.
func (w *Webhook) keepOwner(ctx context.Context, now, old *object) error {
	owner := protected.Owner{Kind: "Release", Now: func(ctx context.Context) (metav1.Object, error) {
		rel, err := w.State.ReleaseNow(ctx, w.releaseKey(old))
		if err != nil || rel == nil {
			return nil, err
		}
		return rel, nil
	}}
	errs, err := owner.Check(ctx, &old.ObjectMeta, &now.ObjectMeta)
	if err != nil {
		return err
	}
	return response.Invalidate(w.Kind.Name, now.Name, errs)
}

// validateDelete uses the Release of the target's name. It ignores the target's reference, which may be missing or name another
// Release.
func (w *Webhook) validateDelete(ctx context.Context, a *response.Response, old *object) error {
	if w.State.NamespaceTerminating(old.Namespace) {
		return nil
	}
	rel, err := w.release(ctx, old)
	if err != nil || rel == nil || !rel.DeletionTimestamp.IsZero() {
		return err
	}
	if err := w.judge(a, old.Name, rel, change{all: true}, true); err != nil {
		return err
	}
	a.Warn("Release %s still exists: Shipper makes this %s again", rel.Name, w.Kind.Name)
	return nil
}

// mayMake refuses users who are neither the reconciler nor may stamp: targets are restored from a backup while no reconciler
// runs. Only the reconciler may change them later.
func (w *Webhook) mayMake(ctx context.Context, req *admission.Request, name string) error {
	may, err := w.Guard.MayStamp(ctx, req, protected.Metadata{Kind: w.Kind.Name, Resource: w.Kind.Resource})
	if err != nil || may {
		return err
	}
	return w.onlyReconciler(req, name)
}

// onlyReconciler refuses all other users, and names the edit that has the intended effect.
func (w *Webhook) onlyReconciler(req *admission.Request, name string) error {
	if req.UserInfo.Username == w.Guard.Reconciler {
		return nil
	}
	return response.Forbid(w.Kind.Resource, name, fmt.Sprintf(
		"spec of %ss is written by Shipper only, and would be written again: %s instead", w.Kind.Name, w.Kind.Instead))
}

// release is the Release of the target's name; nil when there is none.
func (w *Webhook) release(ctx context.Context, o *object) (*shipper.Release, error) {
	return w.State.Release(ctx, w.releaseKey(o))
}

// releaseKey names the Release of a target: it has its name, unless it has checks that a SequenceRun makes.
func (w *Webhook) releaseKey(o *object) types.NamespacedName {
	name := o.Name
	if w.Kind.Name == Check.Name {
		name = cmp.Or(o.Labels[shipper.ReleaseLabel], name)
	}
	return types.NamespacedName{Namespace: o.Namespace, Name: name}
}

// judge lets a target of rel change when no block is in effect for rel, or for the newest Release of the same
// Application: its rollout moves the targets of its predecessors too. What blocks let through of a rollout they let through
// when Shipper rolls it out; byHand is another's doing. While it goes by waves, blocks that name clusters stop a change of these alone.
func (w *Webhook) judge(a *response.Response, name string, rel *shipper.Release, of change, byHand bool) error {
	if w.Kind.Unblocked {
		return nil
	}
	app, err := w.State.App(rel)
	if err != nil {
		return err
	}
	if len(app.Releases) == 0 {
		app.Releases = []*shipper.Release{rel} // it is being deleted, or not in the cache yet
	}
	newest, c := app.Newest(), app.Rollout()
	if byHand {
		c.Kinds = nil
	}
	overrides := slices.Concat(block.Overrides(rel.Annotations), block.Overrides(newest.Annotations))
	overrider := response.OverriderOf("rel", &newest.ObjectMeta)
	v, err := w.BlockCheck.Verdict(overrider.Namespace, overrides, c)
	if err != nil {
		return err
	}
	if whole, held := v.Split(newest); !of.all && len(held.Of(of.clusters)) == 0 {
		v = whole
	}
	return w.BlockCheck.Decide(a, w.Kind.Resource, name, overrider, v)
}

func validateOwner(o *object, rel *shipper.Release) field.ErrorList {
	switch {
	case rel == nil:
		name := o.Name + " (there is no Release of this name)"
		return field.ErrorList{field.NotFound(field.NewPath("metadata", "name"), name)}
	case !references(o, rel):
		return field.ErrorList{field.Required(field.NewPath("metadata", "ownerReferences"), fmt.Sprintf(
			"must refer to Release %s with uid %s", rel.Name, rel.UID))}
	}
	return nil
}

// references reports whether rel, with its UID, owns o.
func references(o *object, rel *shipper.Release) bool {
	for _, ref := range o.OwnerReferences {
		if ref.Kind == "Release" && strings.HasPrefix(ref.APIVersion, shipper.GroupName+"/") &&
			ref.Name == rel.Name && ref.UID == rel.UID {
			return true
		}
	}
	return false
}
