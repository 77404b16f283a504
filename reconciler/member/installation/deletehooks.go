// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/reconciler/retry"
)

// A hook of the deletion that failed is tried again this long after it was started, the longer the more often it failed.
const (
	firstHookRetry = time.Minute
	lastHookRetry  = time.Hour
)

// ofDeletion reports whether a hook runs when the Application is deleted.
func ofDeletion(event release.HookEvent) bool {
	return event == release.HookPreDelete || event == release.HookPostDelete
}

// ofInstallation reports whether a hook runs when a Release is installed.
func ofInstallation(event release.HookEvent) bool {
	return event != release.HookTest && !ofDeletion(event)
}

// runsDeleteHooks reports whether hooks run for the deletion of the Application in a cluster; held is true while a block holds them. It is
// the API server that says whether the Application is being deleted: a backup may bring a target back as it was during a deletion.
func (w *Worker) runsDeleteHooks(ctx context.Context, it *shipper.InstallationTarget, cluster string) (runs, held bool, err error) {
	names, held := strings.CutPrefix(it.Annotations[shipper.DeleteHooksAnnotation], shipper.DeleteHooksHeld)
	if !slices.Contains(strings.Split(names, ","), cluster) {
		return false, false, nil
	}
	var app shipper.Application
	err = w.live.Get(ctx, client.ObjectKey{Namespace: it.Namespace, Name: it.Labels[shipper.AppLabel]}, &app)
	if client.IgnoreNotFound(err) != nil {
		return false, false, fmt.Errorf("reading Application %s: %w", it.Labels[shipper.AppLabel], err)
	}
	return err != nil || app.DeletionTimestamp != nil, held && err == nil, nil
}

// notePending records the hooks that run when the Application is deleted, so that its deletion waits for them.
func (i *installer) notePending(hooks []wanted) {
	for _, event := range []release.HookEvent{release.HookPreDelete, release.HookPostDelete} {
		for _, w := range at(hooks, event) {
			if i.hookRecord == nil {
				i.hookRecord = &hookRecord{}
			}
			entry := item{Kind: w.content.GetKind(), Name: w.content.GetName()}
			if i.hookRecord.find(event, entry) == nil {
				i.hookRecord.put(shipper.HookRun{
					Event: string(event), Kind: entry.Kind, Name: entry.Name, Phase: shipper.HookPending,
					StartedAt: metav1.NewTime(i.now.Truncate(time.Second)),
				})
			}
		}
	}
}

// pending reports whether hooks of an event have not succeeded yet.
func (b *hookRecord) pending(event release.HookEvent) bool {
	return b != nil && slices.ContainsFunc(b.Runs, func(run shipper.HookRun) bool {
		return run.Event == string(event) && run.Phase != shipper.HookSucceeded
	})
}

// preDelete runs the hooks before the deletion. What is installed stays as it is meanwhile. The error is nil once they have succeeded, and
// where there is nothing left for them to work on.
func (i *installer) preDelete(ctx context.Context) error {
	a, err := liveAnchor(ctx, i.member, i.it)
	if err = foreignIsNone(err); err != nil {
		return err
	}
	i.anchor, i.live = a, true
	namespace := i.findNamespace(ctx)
	if reason, _ := retry.ClassifyInCluster(namespace); namespace != nil && reason != shipper.NamespaceMissing {
		return namespace
	}
	if a == nil || a.deleting && !a.held() || namespace != nil || !a.goesWith(i.it) {
		i.hookRecord = &hookRecord{Runs: []shipper.HookRun{}}
		return nil
	}
	i.hookRecord = hookRecordOf(a, find(i.it.Status.Clusters, i.member.Name))
	if !i.hookRecord.pending(release.HookPreDelete) {
		return nil
	}
	source, err := i.rendering.sources.in(i.member.Name)
	if err != nil {
		return err
	}
	t := render.TargetOf(&i.it.ObjectMeta, source.Chart.Naming, i.member.KubeVersion(), i.member.APIVersions())
	i.render = sync.OnceValues(func() ([]wanted, error) { return i.storedOrRendered(ctx, source, t) })
	return i.runDeleteHooks(ctx, release.HookPreDelete)
}

// awaitBlock keeps what is left of a target until no block holds the deletion, so that its hooks run then.
func awaitBlock(_ context.Context, a *anchor) (*anchor, error) {
	return a, &problem{shipper.InProgress, retry.Wait, "post-delete hooks wait while a RolloutBlock holds the deletion"}
}

// postDelete runs the hooks after the removal, when no other Release of the Application has anything in the cluster either, and returns the
// anchor as it is then.
func (i *installer) postDelete(ctx context.Context, a *anchor) (*anchor, error) {
	i.anchor, i.live = a, true
	i.hookRecord = hookRecordOf(a, find(i.it.Status.Clusters, i.member.Name))
	namespace := i.findNamespace(ctx)
	if !i.hookRecord.pending(release.HookPostDelete) || namespace != nil {
		return a, nil
	}
	others, err := anchorsBut(ctx, i.member.Live(), i.it, client.InNamespace(i.it.Namespace),
		client.MatchingLabels{shipper.AppLabel: i.it.Labels[shipper.AppLabel]})
	if err != nil {
		return a, err
	}
	if len(others) > 0 {
		return a, &problem{shipper.InProgress, retry.Retry,
			fmt.Sprintf("post-delete hooks wait until everything that %q owns is gone", others[0].Name)}
	}
	if left, err := i.leftOf(ctx, a.inventory); err != nil || len(left) > 0 {
		waits := "post-delete hooks wait until these are gone: " + list(i.it, left)
		return a, cmp.Or[error](err, &problem{shipper.InProgress, retry.Retry, waits})
	}
	i.render = func() ([]wanted, error) {
		return nil, &problem{shipper.HookFailed, retry.Wait, "post-delete hooks cannot run, because the Secret in " + shipper.SystemNamespace +
			" of the cluster with what the chart rendered to is gone; " + i.skipHooks()}
	}
	err = i.runDeleteHooks(ctx, release.HookPostDelete)
	return i.anchor, err
}

// leftOf are those of the objects that are still there and go with the target: the cache may have seen an owner of theirs that is gone.
func (i *installer) leftOf(ctx context.Context, items []item) (left []item, err error) {
	for _, entry := range items {
		if isShared(entry) {
			continue
		}
		live, err := i.member.LiveMetadata(ctx, entry.gvk(), entry.key())
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		live.OwnerReferences = slices.DeleteFunc(live.OwnerReferences, func(ref metav1.OwnerReference) bool {
			return strings.HasSuffix(ref.Name, shipper.AnchorName(""))
		})
		if goes(i.it, entry, live) {
			left = append(left, entry)
		}
	}
	return left, nil
}

// runDeleteHooks runs the hooks of an event as they were rendered when the Release was installed: their names may be random.
func (i *installer) runDeleteHooks(ctx context.Context, event release.HookEvent) error {
	stored, err := readStored(ctx, i.member, i.it)
	switch {
	case err != nil:
		return err
	case stored != nil && stored.from != "":
		i.stored, i.all, i.rendering.sources.found = stored, stored.objects, stored.found
	default:
		if i.all, err = i.render(); err == nil {
			err = i.store(ctx)
		}
		if err != nil {
			return err
		}
	}
	_, hooks := part(i.all)
	if err := i.runAll(ctx, at(hooks, event), event, i.dueInDeletion); err != nil {
		return err
	}
	i.hookRecord.Runs = slices.DeleteFunc(i.hookRecord.Runs, func(run shipper.HookRun) bool { // of an earlier rendering
		return run.Event == string(event) && run.Phase != shipper.HookSucceeded
	})
	return i.record(ctx, i.anchor.inventory, i.anchor.rendered)
}

// dueInDeletion says whether a hook of the deletion is to be run now, given its last run.
func (i *installer) dueInDeletion(last *shipper.HookRun) (request string, due bool) {
	request = i.hookOrders.retry
	switch {
	case last == nil || last.Phase == shipper.HookPending:
		return request, true
	case last.Phase != shipper.HookHasFailed:
		return request, false
	case request != "" && last.Request != request:
		return request, true
	}
	return request, !i.now.Before(againAt(*last))
}

// againAt is when a hook of the deletion that failed is tried again.
func againAt(last shipper.HookRun) time.Time {
	wait := firstHookRetry
	for n := int32(1); n < last.Attempt && wait < lastHookRetry; n++ {
		wait *= 2
	}
	return last.StartedAt.Add(min(wait, lastHookRetry))
}

// skipHooks is the way out of hooks that fail.
func (i *installer) skipHooks() string {
	return fmt.Sprintf("to delete the Application without the hooks of its chart: kubectl -n %s annotate app %s %s=true",
		i.it.Namespace, i.it.Labels[shipper.AppLabel], shipper.AppDeleteSkipHooksAnnotation)
}

// deleteHooksGone reports whether a cluster that cannot be connected to is no cluster any more: no hook can run there.
func (w *Worker) deleteHooksGone(ctx context.Context, it *shipper.InstallationTarget, cluster string) bool {
	return it.Annotations[shipper.DeleteHooksAnnotation] != "" &&
		apierrors.IsNotFound(w.client.Get(ctx, client.ObjectKey{Name: cluster}, &shipper.Cluster{}))
}
