// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/retry"
)

// releasesDone is what a pass has written, and what it could not write.
type releasesDone struct {
	// scheduling has, by name of a Release, why its clusters or targets could not be written.
	scheduling map[string]error
	// scheduled are the names of Releases whose targets are all there now.
	scheduled []string
	// newest is the name of the newest Release; asked is true when what targets say was changed for it.
	newest string
	asked  bool
	// placed is true when the clusters that were planned are written.
	placed bool
	// moved is true when Shipper moved or deleted the newest Release by itself: the plan is out of date then.
	moved bool
	// rollout is why the strategy's writes stopped; nil when they did not.
	rollout error
	// events by name of the Release they are about.
	events map[string][]report.Event
}

// errs are all errors met; some may be nil.
func (d releasesDone) errs() []error {
	out := []error{d.rollout}
	for _, err := range d.scheduling {
		out = append(out, err)
	}
	return out
}

// retried reports whether something that was written is tried again after a time that grows: the pass does not say then when the next
// one is.
func (d releasesDone) retried() bool {
	return slices.ContainsFunc(d.errs(), func(err error) bool { return retry.Classify(err) == retry.Retry })
}

// refused says which block the webhook named when it refused a write; empty when it refused none.
func (d releasesDone) refused() string {
	for _, err := range d.errs() {
		if said := retry.Blocked(err); said != "" {
			return said
		}
	}
	return ""
}

// applyReleases writes what is planned, and stops at the first thing that cannot be written. Only that the targets of one Release
// cannot be made keeps no other from its own.
func (r *pass) applyReleases(ctx context.Context, s *scope, p releasesPlan) releasesDone {
	d := releasesDone{scheduling: map[string]error{}, events: map[string][]report.Event{}}
	if !p.writes() {
		return d
	}
	if newest := s.history.Newest(); newest != nil {
		d.newest = newest.Name
	}
	if p.clusters.writes() {
		if !r.placeReleases(ctx, s, p.clusters, &d) {
			return d
		}
	}
	if d.rollout = r.writeTargets(ctx, s, p, &d); d.rollout != nil {
		return d
	}
	for _, c := range p.targets {
		rel := s.history.Live[c.index].Release
		if err := r.createTargets(ctx, s, c, &d); err != nil {
			d.scheduling[rel.Name] = err
			continue
		}
		d.scheduled = append(d.scheduled, rel.Name)
	}
	for _, rel := range p.remove {
		if d.rollout = r.removeFinalizer(ctx, rel); d.rollout != nil {
			return d
		}
	}
	if p.checks.run != nil {
		if d.rollout = r.beginChecks(ctx, s, p.checks.run, &d); d.rollout != nil {
			return d
		}
	}
	if p.progress.Acts() {
		newest := s.history.Newest()
		d.rollout = r.advance(ctx, s, p.progress)
		if d.moved = d.rollout == nil; d.moved {
			r.metrics.moved(newest, p.progress)
		}
	}
	return d
}

func (d *releasesDone) note(rel *shipper.Release, e report.Event) {
	d.events[rel.Name] = append(d.events[rel.Name], e)
}

// placeReleases writes the clusters of Releases. It reports whether the pass goes on: the plan for targets is out of date when clusters
// have changed.
func (r *pass) placeReleases(ctx context.Context, s *scope, p clustersPlan, d *releasesDone) bool {
	if p.choice != nil {
		newest := s.own(len(s.history.Live) - 1)
		if err := r.choose(ctx, newest, p.choice, p.assigned[len(s.history.Live)-1]); err != nil {
			d.scheduling[newest.Name] = err
			return false
		}
		d.note(newest, clustersSelected(newest, p.choice))
		d.placed = true
		return true
	}
	if d.rollout = r.confirmGone(ctx, p.gone); d.rollout != nil {
		return false
	}
	for _, c := range p.changes {
		rel := s.own(c.index)
		if d.rollout = r.choose(ctx, rel, c.clusters, p.assigned[c.index]); d.rollout != nil {
			return false
		}
		d.note(rel, clustersSelected(rel, c.clusters))
	}
	d.placed = true
	return false
}

// confirmGone fails with a conflict if one of the clusters exists: the cache of a new leader may not have it yet, and what runs there
// would be taken away.
func (r *pass) confirmGone(ctx context.Context, gone []string) error {
	for _, name := range gone {
		switch err := r.live.Get(ctx, client.ObjectKey{Name: name}, &shipper.Cluster{}); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("reading cluster %s: %w", name, err)
		default:
			return apierrors.NewConflict(shipper.Resource("clusters"), name, errors.New("the cache lags behind the API server"))
		}
	}
	return nil
}

// choose writes the clusters and their waves into the annotations, unless the Release was changed since it was read.
func (r *pass) choose(ctx context.Context, rel *shipper.Release, clusters []string, assigned waves.Assigned) error {
	was := rel.DeepCopy()
	if rel.Annotations == nil {
		rel.Annotations = map[string]string{}
	}
	rel.Annotations[shipper.ReleaseClustersAnnotation] = joined(clusters)
	if assigned != nil {
		rel.Annotations[shipper.ReleaseWavesAnnotation] = assigned.String()
	}
	err := r.client.Patch(ctx, rel, onlyIfUnchanged(was))
	if r.wrote(rel); err != nil {
		return fmt.Errorf("choosing clusters for release %s/%s: %w", rel.Namespace, rel.Name, err)
	}
	return nil
}

// createTargets makes the targets that a Release lacks: none before its chart is known to be one, and whose, and the chart is asked for
// only when capacity is among them.
func (r *pass) createTargets(ctx context.Context, s *scope, c missingTargets, d *releasesDone) error {
	if err := r.verify(ctx, s, c.index, d); err != nil {
		return err
	}
	have := s.history.Live[c.index]
	rel := have.Release
	if rel.Spec.Environment.Resources != nil {
		return r.createTarget(ctx, resourcesTarget(s.history, rel, c.clusters), rel, d)
	}
	var objects []client.Object
	regions, err := r.regions(ctx, have, c.clusters)
	if err != nil {
		return err
	}
	var replicas map[string]int32
	var clusters []render.Cluster
	if have.Capacity == nil {
		if clusters, err = r.clusters(ctx, c.clusters, regions); err != nil {
			return err
		}
		if replicas, err = r.count(ctx, rel, clusters); err != nil {
			return err
		}
	}
	if have.Installation == nil {
		objects = append(objects, installationTarget(rel, c.clusters, regions, rel == s.history.Newest()))
	}
	if have.Traffic == nil {
		objects = append(objects, trafficTarget(rel, c.clusters))
	}
	if have.Capacity == nil {
		ct := capacityTarget(rel, c.clusters, replicas)
		if err := r.describeWorkloads(ctx, rel, ct, clusters); err != nil {
			return err
		}
		objects = append(objects, ct)
	}
	for _, o := range objects {
		if err := r.createTarget(ctx, o, rel, d); err != nil {
			return err
		}
	}
	return nil
}

func (r *pass) createTarget(ctx context.Context, o client.Object, rel *shipper.Release, d *releasesDone) error {
	kind := kindOf(o)
	err := r.client.Create(ctx, o)
	if r.wrote(o); err != nil {
		return fmt.Errorf("creating %s %s/%s: %w", kind, rel.Namespace, rel.Name, err)
	}
	d.note(rel, targetCreated(kind, rel))
	return nil
}

// writeTargets writes what the strategy wants into the specs of targets. A target that gives up shared objects is written before the one
// that takes them over.
func (r *pass) writeTargets(ctx context.Context, s *scope, p releasesPlan, d *releasesDone) error {
	for i, leaving := range p.rollout.Leaving {
		if err := r.writeInstallation(ctx, s.history.Leaving[i], leaving.Write.Installation, d); err != nil {
			return err
		}
	}
	for i, o := range p.rollout.Outcomes {
		if err := r.writeInstallation(ctx, s.history.Live[i], o.Write.Installation, d); err != nil {
			return err
		}
	}
	for i, o := range p.rollout.Outcomes {
		if err := r.writeServing(ctx, s.history.Live[i], o.Write, d); err != nil {
			return err
		}
	}
	for i, leaving := range p.rollout.Leaving {
		if err := r.writeServing(ctx, s.history.Leaving[i], leaving.Write, d); err != nil {
			return err
		}
	}
	return nil
}

// writeServing writes what is wanted of the capacity and the traffic of a Release.
func (r *pass) writeServing(ctx context.Context, have strategy.Release, want strategy.Write, d *releasesDone) error {
	if want.Capacity != nil {
		ct := have.Capacity.DeepCopy()
		ct.Spec = *want.Capacity
		if err := r.countAdded(ctx, have, &ct.Spec); err != nil {
			return err
		}
		if err := r.writeTarget(ctx, ct, have.Capacity, d); err != nil {
			return err
		}
	}
	if want.Traffic != nil {
		tt := have.Traffic.DeepCopy()
		tt.Spec = *want.Traffic
		if err := r.writeTarget(ctx, tt, have.Traffic, d); err != nil {
			return err
		}
	}
	return nil
}

func (r *pass) writeInstallation(
	ctx context.Context, have strategy.Release, want *shipper.InstallationTargetSpec, d *releasesDone,
) error {
	if want == nil {
		return nil
	}
	it := have.Installation.DeepCopy()
	it.Spec = *want
	regions, err := r.regions(ctx, have, want.Clusters)
	if err != nil {
		return err
	}
	it.Spec.Regions = regions
	if err := r.writeTarget(ctx, it, have.Installation, d); err != nil {
		return err
	}
	if have.Release.Spec.Environment.Resources == nil && !slices.Equal(want.Clusters, have.Installation.Spec.Clusters) {
		d.note(have.Release, clustersChanged(it))
	}
	return nil
}

// writeTarget patches a target, unless it was changed since it was read.
func (r *pass) writeTarget(ctx context.Context, o, was client.Object, d *releasesDone) error {
	kind := kindOf(o)
	err := r.client.Patch(ctx, o, onlyIfUnchanged(was))
	if r.wrote(o); err != nil {
		return fmt.Errorf("writing %s %s/%s: %w", kind, o.GetNamespace(), o.GetName(), err)
	}
	d.asked = true
	return nil
}

func onlyIfUnchanged(was client.Object) client.Patch {
	return client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
}

func kindOf(o client.Object) string {
	switch o.(type) {
	case *shipper.InstallationTarget:
		return "InstallationTarget"
	case *shipper.CapacityTarget:
		return "CapacityTarget"
	case *shipper.TrafficTarget:
		return "TrafficTarget"
	}
	return "Release"
}
