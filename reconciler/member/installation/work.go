// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/member/resources"
)

// Outcome is what came of a pass in one cluster.
type Outcome struct {
	cluster string
	// leaving is true when the target is to be removed from the cluster.
	leaving bool
	// missing is set where no pass was made since the target changed.
	missing bool
	// err is what is wrong, or what is waited for. Without one the target is installed or, leaving, gone. general concerns no cluster in
	// particular.
	err, general error
	// events to record.
	events []report.Event
	// scoped are the objects without a namespace that are listed, found or written; without an error, all of them.
	scoped []shipper.ClusterScopedObject
	// objects is how what was installed is; nil when that is not known.
	objects *shipper.InstalledObjects
	// drift is how that differs from what was released; nil if it does not, or if drift is ignored. Later is when to look
	// again; 0 for never.
	drift *shipper.InstalledDrift
	later time.Duration
	// hooks are the runs that are remembered, tested what came of the tests, checked of those of Checks, and testing what is wrong with them.
	hooks   []shipper.HookRun
	tested  *shipper.TestRun
	checked []shipper.TestRun
	testing error
	// wake is when to look again though nothing happens; zero when there is no need.
	wake time.Time
	// placed is what came of a target with resources; nil for charts, and where no pass was made.
	placed *resources.Result
}

// Work installs in a cluster of spec, and removes from one that only status still names, or from all when the target leaves. Nothing is
// installed before the status names the cluster: until then, there is no outcome. all are the targets of its Application, for one with
// resources.
func (w *Worker) Work(ctx context.Context, it *shipper.InstallationTarget, cluster string, all *resources.Siblings) Outcome {
	leaving, err := w.releaseGone(ctx, it)
	if err != nil {
		return Outcome{cluster: cluster, general: err}
	}
	if leaving || !slices.Contains(it.Spec.Clusters, cluster) {
		return w.uninstall(ctx, it, cluster, all, leaving)
	}
	if !controllerutil.ContainsFinalizer(it, shipper.InstallationFinalizer) || find(it.Status.Clusters, cluster).Name == "" {
		return Outcome{cluster: cluster, missing: true}
	}
	changes, err := w.overridesIn(ctx, it, cluster)
	if err != nil {
		return Outcome{cluster: cluster, general: err}
	}
	if it.Spec.Resources != nil {
		return w.place(ctx, it, cluster, all, changes)
	}
	source, err := w.source(ctx, it)
	if source.overrides = changes; err == nil {
		err = w.readRegion(ctx, it, cluster, &source)
	}
	if err != nil {
		return Outcome{cluster: cluster, general: err}
	}
	asked, err := w.hookOrdersOf(ctx, it)
	if err != nil {
		return Outcome{cluster: cluster, general: err}
	}
	return w.install(ctx, it, cluster, &rendering{renderer: w.renderer, sources: source}, asked)
}

// Clusters are all clusters a target is or was in, sorted.
func Clusters(it *shipper.InstallationTarget) []string {
	names := slices.Clone(it.Spec.Clusters)
	for _, c := range it.Status.Clusters {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Missing reports whether there is no outcome.
func (o Outcome) Missing() bool { return o.missing }

func (w *Worker) install(
	ctx context.Context, it *shipper.InstallationTarget, cluster string, renders *rendering, asked hookOrders,
) Outcome {
	member, err := w.fleet.Get(ctx, cluster)
	if err != nil {
		out := Outcome{cluster: cluster, err: err}
		if w.deleteHooksGone(ctx, it, cluster) {
			out.hooks = []shipper.HookRun{}
		}
		return out
	}
	deletion, held, err := w.runsDeleteHooks(ctx, it, cluster)
	if err != nil {
		return Outcome{cluster: cluster, general: err}
	}
	ctx, cancel := member.Context(ctx, fleet.WorkTimeout)
	defer cancel()
	work := &installer{member: member, it: it, rendering: renders, hookOrders: asked, now: w.clock.Now(), home: w.client,
		initialSelector: w.initialSelector}
	out := Outcome{cluster: cluster}
	if deletion && !held {
		out.err = work.discreet(work.preDelete(ctx))
	} else if out.err = work.discreet(work.install(ctx)); out.err == nil {
		out.drift, out.later = w.drift(ctx, work)
		out.testing = work.discreet(work.test(ctx))
	}
	out.objects = work.survey(ctx)
	out.events, out.scoped, out.tested, out.checked, out.wake = work.events, work.reported(), work.tested, work.checked, work.wake
	if work.hookRecord != nil {
		out.hooks = work.hookRecord.Runs
	}
	return out
}

func (w *Worker) uninstall(
	ctx context.Context, it *shipper.InstallationTarget, cluster string, all *resources.Siblings, leaving bool,
) Outcome {
	out := Outcome{cluster: cluster, leaving: true}
	member, err := w.fleet.Get(ctx, cluster)
	if err != nil {
		if out.err = err; !fleet.Pending(err) && w.hasNoCluster(ctx, cluster) {
			out.err, out.events = nil, []report.Event{abandoned(cluster)}
		}
		return out
	}
	ctx, cancel := member.Context(ctx, fleet.WorkTimeout)
	defer cancel()
	if !leaving {
		duplicate, err := w.duplicateCluster(ctx, it, member)
		if err != nil {
			out.err = err
			return out
		}
		if duplicate != "" {
			out.events = []report.Event{staysAs(cluster, duplicate)}
			return out
		}
	}
	if it.Spec.Resources != nil {
		return placedOutcome(out, w.resources.Remove(ctx, resources.TaskIn(member, it, all, "")))
	}
	work := &installer{member: member, it: it, rendering: &rendering{sources: sourcesOf(it)}, now: w.clock.Now()}
	if work.rendering.sources.overrides, err = w.overridesIn(ctx, it, cluster); err != nil {
		out.general = err
		return out
	}
	after := func(_ context.Context, a *anchor) (*anchor, error) { return a, nil }
	switch deletion, held, err := w.runsDeleteHooks(ctx, it, cluster); {
	case err != nil:
		out.general = err
		return out
	case deletion && leaving && held:
		after = awaitBlock
	case deletion && leaving:
		after = work.postDelete
	}
	stays, err := w.stays(ctx, it)
	if err != nil {
		out.general = err
		return out
	}
	out.events, out.err = uninstall(ctx, member, it, stays, after)
	out.err, out.wake = work.discreet(out.err), work.wake
	if work.hookRecord != nil {
		out.hooks = work.hookRecord.Runs
	}
	return out
}

// hasNoCluster reports whether a cluster is known to be unknown.
func (w *Worker) hasNoCluster(ctx context.Context, cluster string) bool {
	return apierrors.IsNotFound(w.client.Get(ctx, client.ObjectKey{Name: cluster}, &shipper.Cluster{}))
}

// Errors are those met.
func (o Outcome) Errors() []error {
	var out []error
	for _, err := range []error{o.general, o.err, o.testing} {
		if err != nil {
			out = append(out, fmt.Errorf("cluster %q: %w", o.cluster, err))
		}
	}
	return out
}

// Events are those to record of what was done.
func (o Outcome) Events() []report.Event { return o.events }

// Again is when to look again though nothing happens; 0 for never.
func (o Outcome) Again(now time.Time) time.Duration {
	if o.wake.IsZero() {
		return o.later
	}
	return report.Sooner(o.later, max(o.wake.Sub(now), time.Millisecond))
}
