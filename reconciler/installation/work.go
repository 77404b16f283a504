// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/targets"
)

// outcome is what came of a pass in one cluster.
type outcome struct {
	cluster string
	// leaving is true when the target is to be removed from the cluster.
	leaving bool
	// err is what is wrong, or what is waited for. Without one the target is installed or, leaving, gone.
	err error
	// events to record.
	events []report.Event
	// scoped are the objects without a namespace that were found or written; without an error, all of them.
	scoped []shipper.ClusterScopedObject
	// objects is how what was installed is; nil when that is not known.
	objects *shipper.InstalledObjects
	// drift is how that differs from what was released; nil if it does not, or if drift is ignored. Later is when to look
	// again; 0 for never.
	drift *shipper.InstalledDrift
	later time.Duration
	// hooks are the runs that are remembered, tested what came of the tests, and testing what is wrong with those.
	hooks   []shipper.HookRun
	tested  *shipper.TestRun
	testing error
	// wake is when to look again though nothing happens; zero when there is no need.
	wake time.Time
}

// remember makes sure, before anything is written in a cluster, that the target cannot go before it is cleaned, and
// that its status names every cluster.
func (r *Reconciler) remember(ctx context.Context, it *shipper.InstallationTarget) error {
	if !controllerutil.ContainsFinalizer(it, shipper.InstallationFinalizer) {
		was := it.DeepCopy()
		controllerutil.AddFinalizer(it, shipper.InstallationFinalizer)
		patch := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
		if err := r.client.Patch(ctx, it, patch); err != nil {
			return fmt.Errorf("adding the finalizer to InstallationTarget %s: %w", it.Name, err)
		}
	}
	was := it.DeepCopy()
	it.Status.Clusters = withClusters(it.Status.Clusters, it.Spec.Clusters)
	if _, err := report.PatchStatus(ctx, r.client, it, was); err != nil {
		return fmt.Errorf("noting the clusters of InstallationTarget %s: %w", it.Name, err)
	}
	return nil
}

// leaves reports whether what a target installed is to be removed: it was deleted and its Release is gone. The API server is asked,
// for a cache that does not show a Release yet must not take down what it runs.
func (r *Reconciler) leaves(ctx context.Context, it *shipper.InstallationTarget) (bool, error) {
	if it.DeletionTimestamp == nil {
		return false, nil
	}
	if ended, err := targets.Ended(ctx, r.client, it); err != nil || !ended {
		return false, err
	}
	return targets.Ended(ctx, r.live, it)
}

// release lets a target go.
func (r *Reconciler) release(ctx context.Context, it *shipper.InstallationTarget) error {
	return targets.Release(ctx, r.client, it)
}

// work installs in the clusters of spec and removes from those that only status still names, or from all. The error
// is one that concerns no cluster in particular. It is errRendering when there is more to do as soon as a chart is rendered.
func (r *Reconciler) work(
	ctx context.Context, it *shipper.InstallationTarget, leaving bool, pass *fleet.SlotRequest,
) ([]outcome, error) {
	req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(it)}
	var renders *rendering
	var asked hookOrders
	if !leaving {
		source, err := r.source(ctx, it)
		if err != nil {
			return nil, err
		}
		if err := r.place(ctx, it, &source); err != nil {
			return nil, err
		}
		renders = newRendering(ctx, r.renderer, source)
		renders.get = func(fingerprint string, render func() ([]wanted, error)) ([]wanted, error) {
			return r.renders.get(ctx, req, fingerprint, render)
		}
		if asked, err = r.hookOrdersOf(ctx, it); err != nil {
			return nil, err
		}
	}
	names := clusterNames(it)
	out := make([]outcome, len(names))
	fleet.Each(len(names), fleet.Parallel, func(i int) {
		defer pass.Release(names[i])
		if leaving || !slices.Contains(it.Spec.Clusters, names[i]) {
			out[i] = r.uninstall(ctx, it, names[i], leaving)
		} else {
			out[i] = r.install(ctx, it, names[i], renders, asked)
		}
	})
	if renders != nil && renders.unfinished.Load() {
		return out, errRendering
	}
	r.renders.forget(req)
	return out, nil
}

// clusterNames are all clusters a target is or was in, sorted.
func clusterNames(it *shipper.InstallationTarget) []string {
	names := slices.Clone(it.Spec.Clusters)
	for _, c := range it.Status.Clusters {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (r *Reconciler) install(
	ctx context.Context, it *shipper.InstallationTarget, cluster string, renders *rendering, asked hookOrders,
) outcome {
	member, err := r.fleet.Get(ctx, cluster)
	if err != nil {
		return outcome{cluster: cluster, err: err}
	}
	ctx, cancel := member.Context(ctx, fleet.WorkTimeout)
	defer cancel()
	work := &installer{member: member, it: it, rendering: renders, hookOrders: asked, now: r.clock.Now(), initialSelector: r.initialSelector}
	out := outcome{cluster: cluster}
	if out.err = work.discreet(work.install(ctx)); out.err == nil {
		out.drift, out.later = r.drift(ctx, work)
		out.testing = work.discreet(work.test(ctx))
	}
	out.objects = work.survey(ctx)
	out.events, out.scoped, out.tested, out.wake = work.events, work.scoped, work.tested, work.wake
	if work.hookRecord != nil {
		out.hooks = work.hookRecord.Runs
	}
	return out
}

func (r *Reconciler) uninstall(ctx context.Context, it *shipper.InstallationTarget, cluster string, leaving bool) outcome {
	out := outcome{cluster: cluster, leaving: true}
	member, err := r.fleet.Get(ctx, cluster)
	if err != nil {
		if out.err = err; !fleet.Pending(err) && r.hasNoCluster(ctx, cluster) {
			out.err, out.events = nil, []report.Event{abandoned(cluster)}
		}
		return out
	}
	ctx, cancel := member.Context(ctx, fleet.WorkTimeout)
	defer cancel()
	if !leaving {
		twin, err := r.duplicateCluster(ctx, it, member)
		if err != nil {
			out.err = err
			return out
		}
		if twin != "" {
			out.events = []report.Event{staysAs(cluster, twin)}
			return out
		}
	}
	out.events, out.err = uninstall(ctx, member, it, find(it.Status.Clusters, cluster).ClusterScoped)
	out.err = sourcesOf(it).discreet(out.err)
	return out
}

// hasNoCluster reports whether a cluster is known to be unknown.
func (r *Reconciler) hasNoCluster(ctx context.Context, cluster string) bool {
	return apierrors.IsNotFound(r.client.Get(ctx, client.ObjectKey{Name: cluster}, &shipper.Cluster{}))
}

// allGone reports whether a target is gone from every cluster.
func allGone(outcomes []outcome) bool {
	return !slices.ContainsFunc(outcomes, func(o outcome) bool { return o.err != nil })
}

// sooner is result, or the time when a hook is to have ended.
func sooner(result ctrl.Result, outcomes []outcome, now time.Time) ctrl.Result {
	for _, o := range outcomes {
		if o.wake.IsZero() {
			continue
		}
		if in := max(o.wake.Sub(now), time.Millisecond); result.RequeueAfter == 0 || in < result.RequeueAfter {
			result.RequeueAfter = in
		}
	}
	return result
}

// failures are the errors met.
func failures(outcomes []outcome, general error) []error {
	var out []error
	if general != nil {
		out = append(out, general)
	}
	for _, o := range outcomes {
		if o.err != nil {
			out = append(out, fmt.Errorf("cluster %q: %w", o.cluster, o.err))
		}
		if o.testing != nil {
			out = append(out, fmt.Errorf("cluster %q: %w", o.cluster, o.testing))
		}
	}
	return out
}
