// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/member/applyset"
	"shipper.dev/shipper/reconciler/member/rights"
	"shipper.dev/shipper/reconciler/retry"
)

// maxWhy bounds the reason of a failed hook: the container's message may have 4 KiB, and status has it three times for each cluster.
const maxWhy = 512

// runAll runs hooks of an event in their order, each when the one before has succeeded. again says whether a hook is to be
// run again, given its last run, and for which request.
func (i *installer) runAll(
	ctx context.Context, hooks []wanted, event release.HookEvent, again func(*shipper.HookRun) (string, bool),
) error {
	for n, w := range hooks {
		err := i.runOne(ctx, w, event, again)
		if reason, _ := retry.ClassifyInCluster(err); err != nil && reason == shipper.HookFailed {
			if err := i.clearAway(ctx, hooks[n:n+1], event, release.HookFailed); err != nil {
				return err
			}
			if err := i.clearAway(ctx, hooks[:n], event, release.HookSucceeded); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
	return i.clearAway(ctx, hooks, event, release.HookSucceeded)
}

// runOne begins a hook, or looks how far it is. The error is nil once it has succeeded.
func (i *installer) runOne(
	ctx context.Context, w wanted, event release.HookEvent, again func(*shipper.HookRun) (string, bool),
) error {
	entry, err := i.hookItem(w)
	if err != nil {
		return err
	}
	run := i.hookRecord.find(event, entry)
	request, now := again(run)
	if now || run.Phase == shipper.HookRunning {
		if err := i.confirmHooks(ctx); err != nil {
			return err
		}
	}
	if now {
		return i.begin(ctx, w, entry, shipper.HookRun{
			Event: string(event), Kind: entry.Kind, Name: entry.Name, Request: request, Attempt: attempt(run),
		})
	}
	switch run.Phase {
	case shipper.HookSucceeded:
		return nil
	case shipper.HookHasFailed:
		return i.failed(*run)
	}
	live, err := i.hookObject(ctx, entry)
	if err != nil {
		return err
	}
	switch {
	case run.UID == "" && live == nil: // killed before it was made
		return i.start(ctx, w, entry, *run)
	case run.UID == "" && live.GetAnnotations()[shipper.HookRunAnnotation] != i.runID(*run):
		return i.makeRoom(ctx, w, entry, *run, live)
	case run.UID == "": // killed after it was made
		run.UID = live.GetUID()
		if err := i.remember(ctx, *run); err != nil {
			return err
		}
	case live == nil || live.GetUID() != run.UID:
		return i.finish(ctx, *run, "it was removed before its end was seen")
	}
	return i.await(ctx, w, *run, live)
}

// confirmHooks fails while the anchor that was read is older than that of the API server: by its runs an object that was made already
// would count as another's, or would be made again.
func (i *installer) confirmHooks(ctx context.Context) error {
	if i.live {
		return nil
	}
	now, err := liveAnchor(ctx, i.member, i.it)
	switch {
	case err != nil:
		return err
	case now == nil || now.UID != i.anchor.UID || now.hooks != i.anchor.hooks:
		return &problem{shipper.InProgress, retry.Retry, "hooks wait until the cache has their last runs"}
	}
	i.anchor, i.live = now, true
	return nil
}

// attempt is the number of the run after the last.
func attempt(last *shipper.HookRun) int32 {
	if last == nil {
		return 1
	}
	return last.Attempt + 1
}

// begin makes room for a hook's object, remembers the run and makes it. A Release that is not the newest any more begins
// nothing: what its hooks do may be wrong by now.
func (i *installer) begin(ctx context.Context, w wanted, entry item, run shipper.HookRun) error {
	if !i.it.Spec.CanOverride && ofInstallation(release.HookEvent(run.Event)) {
		text := fmt.Sprintf("hook %s: %s is not run, because there is a newer Release", run.Event, i.called(entry))
		return &problem{shipper.InProgress, retry.Wait, text}
	}
	if i.hookOrders.blocked && i.asked(run) {
		text := fmt.Sprintf("hook %s: %s is not run while RolloutBlocks stop the Release", run.Event, i.called(entry))
		return &problem{shipper.InProgress, retry.Wait, text}
	}
	live, err := i.hookObject(ctx, entry)
	if err != nil {
		return err
	}
	run.Phase, run.StartedAt = shipper.HookRunning, metav1.NewTime(i.now.Truncate(time.Second))
	if live != nil {
		return i.makeRoom(ctx, w, entry, run, live)
	}
	if err := i.remember(ctx, run); err != nil {
		return err
	}
	return i.start(ctx, w, entry, run)
}

// asked reports whether a user asked for a run by an annotation, which is no part of the rollout that was admitted. The tests of Checks are
// held with their CheckTarget, and the hooks of the deletion with it.
func (i *installer) asked(run shipper.HookRun) bool {
	event := release.HookEvent(run.Event)
	return event == release.HookTest && run.Request == i.hookOrders.test || ofInstallation(event) && run.Attempt > 1
}

// makeRoom removes an object with the name of a hook, if the chart requires that and Shipper owns the object.
func (i *installer) makeRoom(
	ctx context.Context, w wanted, entry item, run shipper.HookRun, live *unstructured.Unstructured,
) error {
	hook := fmt.Sprintf("hook %s: %s", run.Event, i.called(entry))
	app := i.it.Labels[shipper.AppLabel]
	if isShared(entry) {
		run.Phase = shipper.HookSucceeded
		return i.remember(ctx, run)
	}
	if labels := live.GetLabels(); labels[shipper.AppLabel] != app || labels[shipper.OwnedByLabel] == "" {
		return conflict("%s is there already, and was not made by Shipper for this Application", hook)
	}
	made, err := i.maker(ctx, entry, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: live.GetNamespace(), Name: live.GetName(), Annotations: live.GetAnnotations(), OwnerReferences: live.GetOwnerReferences(),
	}})
	if err != nil {
		return err
	}
	listed, err := remainingInventories(ctx, i.member, i.it, []item{entry})
	if err != nil {
		return err
	}
	switch {
	case made != "":
		return conflict("%s is there already, and cannot be replaced: %s", hook, made)
	case contains(listed, entry):
		return conflict("%s is there already, installed by another Release", hook)
	case live.GetDeletionTimestamp() != nil:
	case !w.hook.Deletes(release.HookBeforeHookCreation):
		return i.finish(ctx, run, "it is there already, and its delete policy does not have it removed before")
	default:
		if err := i.removeHook(ctx, live); err != nil {
			return err
		}
	}
	return &problem{shipper.InProgress, retry.Wait, hook + " waits until its predecessor is gone"}
}

// start makes a hook's object.
func (i *installer) start(ctx context.Context, w wanted, entry item, run shipper.HookRun) error {
	object := w.in(entry.Namespace)
	annotations := object.GetAnnotations()
	annotations[shipper.HookRunAnnotation] = i.runID(run)
	object.SetAnnotations(annotations)
	if entry.gvk() == podKind { // else it would have traffic where that is the Release's
		labels := object.GetLabels()
		delete(labels, shipper.ReleaseLabel)
		object.SetLabels(labels)
	}
	if entry.Namespace != "" && ends(entry) && !kept(entry, annotations) {
		object.SetOwnerReferences([]metav1.OwnerReference{i.anchor.reference(shipper.AnchorName(i.it.Name))})
	}
	err := i.member.Client().Create(ctx, object, client.FieldOwner(shipper.FieldOwner))
	switch {
	case rights.Denied(err):
		return i.granted(entry, err)
	case retry.Rejected(err):
		return i.finish(ctx, run, retry.Within(i.discreet(err), maxWhy))
	case apierrors.IsAlreadyExists(err):
		return &problem{shipper.InProgress, retry.Retry, fmt.Sprintf("hook %s: %s has just appeared", run.Event, i.called(entry))}
	case err != nil:
		return i.about(fmt.Sprintf("hook %s: making %s", run.Event, i.called(entry)), err)
	}
	run.UID = object.GetUID()
	if err := i.remember(ctx, run); err != nil {
		return err
	}
	return i.await(ctx, w, run, object)
}

// await looks whether a hook has ended. An event of its object brings the next pass, and its deadline.
func (i *installer) await(ctx context.Context, w wanted, run shipper.HookRun, live *unstructured.Unstructured) error {
	done, wrong := ended(live)
	deadline := run.StartedAt.Add(w.hook.Timeout)
	switch {
	case wrong != "":
		return i.finish(ctx, run, wrong)
	case done:
		run.Phase = shipper.HookSucceeded
		return i.remember(ctx, run)
	case !i.now.Before(deadline):
		return i.finish(ctx, run, fmt.Sprintf("it did not end within %s", w.hook.Timeout))
	}
	i.wakeAt(deadline)
	return &problem{shipper.InProgress, retry.Wait, fmt.Sprintf("hook %s: %s runs, until %s at most",
		run.Event, i.calledHook(run), deadline.UTC().Format(time.RFC3339))}
}

// wakeAt has another pass made at a time, unless one is made before.
func (i *installer) wakeAt(at time.Time) {
	if i.wake.IsZero() || at.Before(i.wake) {
		i.wake = at
	}
}

// finish remembers why a hook failed.
func (i *installer) finish(ctx context.Context, run shipper.HookRun, why string) error {
	run.Phase, run.Message = shipper.HookHasFailed, report.Shorten(why, maxWhy)
	if err := i.remember(ctx, run); err != nil {
		return err
	}
	return i.failed(run)
}

// calledHook names the object of a run as called does.
func (i *installer) calledHook(run shipper.HookRun) string {
	entry := item{Kind: run.Kind, Name: run.Name}
	for _, w := range i.all {
		if w.content.GetKind() == run.Kind && w.content.GetName() == run.Name {
			entry.APIVersion = w.content.GetAPIVersion()
		}
	}
	return i.called(entry)
}

// failed is what a hook that failed is to the installation, and what to do about it.
func (i *installer) failed(run shipper.HookRun) error {
	text := fmt.Sprintf("hook %s: %s failed: %s", run.Event, i.calledHook(run), run.Message)
	switch event := release.HookEvent(run.Event); {
	case ofDeletion(event):
		i.wakeAt(againAt(run))
		text += fmt.Sprintf("; it is tried again after %s; %s", againAt(run).UTC().Format(time.RFC3339), i.skipHooks())
	case ofInstallation(event):
		text += fmt.Sprintf("; change the chart or its values, or have it run again: kubectl -n %s annotate release %s %s=%d --overwrite",
			i.it.Namespace, i.it.Name, shipper.ReleaseHooksRetryAnnotation, run.Attempt+1)
	}
	return &problem{shipper.HookFailed, retry.Wait, text}
}

// clearAway removes the objects of hooks that have such a policy, as far as they are of the last run.
func (i *installer) clearAway(
	ctx context.Context, hooks []wanted, event release.HookEvent, policy release.HookDeletePolicy,
) error {
	for _, w := range slices.Backward(hooks) {
		entry, err := i.hookItem(w)
		if err != nil {
			return err
		}
		run := i.hookRecord.find(event, entry)
		if !w.hook.Deletes(policy) || run == nil || run.UID == "" || isShared(entry) {
			continue
		}
		live, err := i.hookObject(ctx, entry)
		if err != nil {
			return err
		}
		if live == nil || live.GetUID() != run.UID || live.GetDeletionTimestamp() != nil {
			continue
		}
		if err := i.removeHook(ctx, live); err != nil {
			return err
		}
	}
	return nil
}

// removeHook deletes a hook's object, after the Pods it owns.
func (i *installer) removeHook(ctx context.Context, live *unstructured.Unstructured) error {
	uid := live.GetUID()
	err := i.member.Client().Delete(ctx, live, applyset.Foreground, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		entry := item{APIVersion: live.GetAPIVersion(), Kind: live.GetKind(), Namespace: live.GetNamespace(), Name: live.GetName()}
		return i.granted(entry, fmt.Errorf("removing %s %q: %w", live.GetKind(), live.GetName(), err))
	}
	return nil
}

// remember remembers a run.
func (i *installer) remember(ctx context.Context, run shipper.HookRun) error {
	i.hookRecord.put(run)
	return i.record(ctx, i.anchor.inventory, i.anchor.rendered)
}

// runID distinguishes the object of one run from those of other runs and other anchors.
func (i *installer) runID(run shipper.HookRun) string {
	return fmt.Sprintf("%s/%s/%d", i.anchor.UID, run.Event, run.Attempt)
}

// hookItem is what is to be made.
func (i *installer) hookItem(w wanted) (item, error) {
	out := item{APIVersion: w.content.GetAPIVersion(), Kind: w.content.GetKind(), Name: w.content.GetName()}
	mapping, err := i.member.Mapping(out.gvk())
	switch {
	case meta.IsNoMatchError(err):
		return out, &problem{shipper.ChartError, retry.Recheck, fmt.Sprintf("hook %s is of a kind the cluster does not know", i.called(out))}
	case err != nil:
		return out, fmt.Errorf("asking for the kind %s: %w", out.Kind, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		out.Namespace = i.it.Namespace
	}
	return out, nil
}

// hookObject reads an object whole, as the API server has it; nil when it is not there. Before, it makes sure that events of
// its kind are heard: what changes after it was read brings another pass.
func (i *installer) hookObject(ctx context.Context, entry item) (*unstructured.Unstructured, error) {
	if _, err := i.member.Metadata(ctx, entry.gvk(), entry.key()); client.IgnoreNotFound(err) != nil {
		return nil, i.granted(entry, err)
	}
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(entry.gvk())
	err := i.member.Live().Get(ctx, entry.key(), out)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, i.granted(entry, fmt.Errorf("reading %s: %w", entry, err))
	}
	return out, nil
}
