// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/applyset"
)

// held reports whether an anchor has Shipper's finalizer.
func (a *anchor) held() bool {
	return a != nil && slices.Contains(a.finalizers, shipper.AnchorFinalizer)
}

// release removes Shipper's finalizer from an anchor, as it was read.
func (a *anchor) release(ctx context.Context, m *fleet.Member, key types.NamespacedName) (*anchor, error) {
	if !a.held() {
		return a, nil
	}
	out := *a
	out.finalizers = slices.DeleteFunc(slices.Clone(a.finalizers), func(f string) bool { return f == shipper.AnchorFinalizer })
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": a.ResourceVersion, "finalizers": out.finalizers}})
	if err != nil {
		return a, fmt.Errorf("encoding finalizers: %w", err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := m.Client().Patch(ctx, cm, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(shipper.FieldOwner)); err != nil {
		return a, fmt.Errorf("removing the finalizer of ConfigMap %q: %w", key.Name, err)
	}
	out.Version = applyset.VersionOf(cm)
	return &out, nil
}

// releaseAnchor lets the anchor go in a namespace that is being deleted, or nothing would end the deletion. One without our label is in no
// cache.
func (i *installer) releaseAnchor(ctx context.Context) error {
	a, err := liveAnchor(ctx, i.member, i.it)
	if err = foreignIsNone(err); err != nil || !a.held() || a.claim != nil {
		return err
	}
	_, err = a.release(ctx, i.member, anchorKey(i.it))
	return client.IgnoreNotFound(err)
}

// ReleaseAnchor lets an anchor go that is being deleted in a cluster where the target of its name is not, or is not any more.
func (w *Worker) ReleaseAnchor(ctx context.Context, cluster string, target types.NamespacedName) error {
	member, err := w.fleet.Get(ctx, cluster)
	if err != nil { // its connection brings an event of the anchor
		return nil
	}
	it := &shipper.InstallationTarget{ObjectMeta: metav1.ObjectMeta{Namespace: target.Namespace, Name: target.Name}}
	a, err := anchorFrom(ctx, member.Client(), member, it)
	if err = foreignIsNone(err); err != nil || !a.held() || !a.deleting || a.claim != nil {
		return err
	}
	if err := w.live.Get(ctx, target, it); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading InstallationTarget %s: %w", target, err)
	}
	if slices.Contains(Clusters(it), cluster) {
		return nil // a cache is late
	}
	_, err = a.release(ctx, member, anchorKey(it))
	return client.IgnoreNotFound(err)
}

// replaceAnchor makes another anchor in place of one that is being deleted. Nothing that it owns has an owner in between, so that the
// garbage collector deletes none of it. A pass that is killed then leaves objects without an owner, which the next pass marks.
func (i *installer) replaceAnchor(ctx context.Context) error {
	key := anchorKey(i.it)
	old, err := liveAnchor(ctx, i.member, i.it)
	switch i.anchor, i.live, i.replaced = old, true, true; {
	case err != nil || old == nil:
		return err
	case old.claim != nil:
		return old.claim
	case !old.deleting:
		return nil
	case !old.held():
		return waiting("what an earlier installation left behind is still being removed")
	}
	owned, err := i.setFree(ctx, old)
	if err != nil {
		return err
	}
	if len(old.finalizers) > 1 { // that of the garbage collector, say: an event reports its removal
		return waiting("ConfigMap %q was deleted in the cluster, and has the finalizers %q", key.Name, old.finalizers)
	}
	if _, err := old.release(ctx, i.member, key); client.IgnoreNotFound(err) != nil {
		return err
	}
	want := anchorFor(i.member, i.it, old.inventory, "") // all is planned again: the list may lack what went with the old one
	want.hooks = old.hooks
	if i.anchor, err = writeAnchor(ctx, i.member, i.it, nil, want); err != nil {
		return err
	}
	i.events = append(i.events, remade(i.member.Name, key.Name))
	for _, live := range owned {
		if err := i.own(ctx, live); err != nil {
			return err
		}
	}
	return nil
}

// own makes the anchor an owner of an object, as it was read.
func (i *installer) own(ctx context.Context, live *metav1.PartialObjectMetadata) error {
	refs := withOwner(live.OwnerReferences, i.anchor.reference(shipper.AnchorName(i.it.Name)))
	if _, err := setOwners(ctx, i.member, live, refs); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("giving %s %q its owner: %w", live.Kind, live.Name, err)
	}
	return nil
}

// setFree removes an anchor from the owners of what it lists and of what is stored, for a user may have edited the list, and of hooks and
// tests, and returns these objects as they are then.
func (i *installer) setFree(ctx context.Context, old *anchor) (owned []*metav1.PartialObjectMetadata, err error) {
	all, err := i.runs(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := i.storedItems(ctx)
	if err != nil {
		return nil, err
	}
	for _, entry := range merge(old.inventory, stored) {
		if entry.Namespace == "" {
			continue
		}
		live, err := i.member.LiveMetadata(ctx, entry.gvk(), entry.key())
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, live)
	}
	done := map[types.UID]bool{} // hooks are listed twice: they are stored, too
	for _, live := range all {
		if done[live.UID] || !old.owns(live) {
			continue
		}
		done[live.UID] = true
		free, err := setOwners(ctx, i.member, live, withoutOwner(live.OwnerReferences, shipper.AnchorName(i.it.Name)))
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("keeping %s %q: %w", live.Kind, live.Name, err)
		}
		owned = append(owned, free)
	}
	return owned, nil
}

// ownLost gives the anchor what hooks have made and has no owner: a kill or a conflict may have ended the pass that replaced the anchor
// before there was another, or before that owned them. An anchor that was made again counts as not installed until then.
func (i *installer) ownLost(ctx context.Context) error {
	if i.was && !i.replaced {
		return nil
	}
	var runs []shipper.HookRun
	if i.hookRecord != nil {
		runs = i.hookRecord.Runs
	}
	runs = append(slices.Clone(runs), find(i.it.Status.Clusters, i.member.Name).Hooks...)
	kinds := map[string]schema.GroupVersionKind{jobKind.Kind: jobKind, podKind.Kind: podKind}
	seen := map[types.UID]bool{"": true}
	for _, run := range runs {
		gvk, counted := kinds[run.Kind]
		if !counted || seen[run.UID] {
			continue
		}
		seen[run.UID] = true
		live, err := i.member.LiveMetadata(ctx, gvk, types.NamespacedName{Namespace: i.it.Namespace, Name: run.Name})
		if apierrors.IsNotFound(err) || err == nil && (live.UID != run.UID || !i.lost(live)) {
			continue
		}
		if err != nil {
			return err
		}
		if err := i.own(ctx, live); err != nil {
			return err
		}
	}
	return nil
}

// lost reports whether a hook's object has no owner since the anchor was replaced. What the chart installs gets its owner when it is
// written again; what a hook made is not.
func (i *installer) lost(live *metav1.PartialObjectMetadata) bool {
	return len(live.OwnerReferences) == 0 && live.Annotations[shipper.HookRunAnnotation] != "" &&
		live.Labels[shipper.OwnedByLabel] == i.it.Name && !render.Keeps(live.Annotations)
}

// storedItems are the objects of the namespace that the target was rendered to, whatever its anchor lists. Those of another namespace, and
// without one, have no owner.
func (i *installer) storedItems(ctx context.Context) (out []item, err error) {
	stored, err := readStored(ctx, i.member, i.it)
	if stored == nil || err != nil {
		return nil, err
	}
	for _, object := range stored.objects {
		content := object.content
		mapping, err := i.member.Mapping(content.GroupVersionKind())
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			out = append(out, item{
				APIVersion: content.GetAPIVersion(), Kind: content.GetKind(), Namespace: i.it.Namespace, Name: content.GetName(),
			})
		}
	}
	return out, nil
}

// runs are the Jobs in the namespace, and the Pods of the Application: those of hooks and tests have the anchor for an owner.
func (i *installer) runs(ctx context.Context) (out []*metav1.PartialObjectMetadata, err error) {
	for _, of := range []struct {
		kind schema.GroupVersionKind
		with client.MatchingLabels
	}{
		{jobKind, nil},
		{podKind, client.MatchingLabels{shipper.AppLabel: i.it.Labels[shipper.AppLabel]}},
	} {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(of.kind)
		if err := i.member.Live().List(ctx, &list, client.InNamespace(i.it.Namespace), of.with); err != nil {
			return nil, fmt.Errorf("listing kind %s: %w", of.kind.Kind, err)
		}
		for n := range list.Items {
			list.Items[n].SetGroupVersionKind(of.kind)
			out = append(out, &list.Items[n])
		}
	}
	return out, nil
}
