// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/member/targetstatus"
	"shipper.dev/shipper/reconciler/retry"
	"shipper.dev/shipper/reconciler/targets"
)

// Target is how InstallationTargets report what came of the work in their clusters.
type Target struct {
	client client.Client
	worker *Worker
}

var _ targetstatus.Kind[*shipper.InstallationTarget, Outcome] = &Target{}

// NewTarget makes a Target.
func NewTarget(c client.Client, worker *Worker) *Target { return &Target{client: c, worker: worker} }

// Clusters names those that the status is about.
func (t *Target) Clusters(it *shipper.InstallationTarget) []string { return Clusters(it) }

// Prepare makes sure, before anything is written in a cluster, that the target cannot go before it is cleaned, and that its status names
// every cluster.
func (t *Target) Prepare(ctx context.Context, it *shipper.InstallationTarget) (ended bool, err error) {
	if it.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(it, shipper.InstallationFinalizer) {
		return true, nil
	}
	if leaving, err := t.worker.releaseGone(ctx, it); err != nil || leaving {
		return false, err
	}
	if !controllerutil.ContainsFinalizer(it, shipper.InstallationFinalizer) {
		was := it.DeepCopy()
		controllerutil.AddFinalizer(it, shipper.InstallationFinalizer)
		patch := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
		if err := t.client.Patch(ctx, it, patch); err != nil {
			return false, fmt.Errorf("adding the finalizer to InstallationTarget %s: %w", it.Name, err)
		}
	}
	was := it.DeepCopy()
	it.Status.Clusters = withClusters(it.Status.Clusters, it.Spec.Clusters)
	if _, err := report.PatchStatus(ctx, t.client, it, was); err != nil {
		return false, fmt.Errorf("noting the clusters of InstallationTarget %s: %w", it.Name, err)
	}
	return false, nil
}

// Report sets the status.
func (t *Target) Report(
	it *shipper.InstallationTarget, results map[string]Outcome, now time.Time,
) (turned bool, again time.Duration) {
	var outcomes []Outcome
	var general error
	loading := false
	for _, cluster := range Clusters(it) {
		one, known := results[cluster]
		if !known {
			one = Outcome{cluster: cluster, missing: true}
		}
		if one.general != nil {
			general = one.general
		}
		loading = loading || errors.Is(one.err, errLoading)
		outcomes = append(outcomes, one)
	}
	was := it.Status
	it.Status = status(it, outcomes, general, now)
	going := it.DeletionTimestamp != nil || slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.placed != nil && o.placed.Ended })
	if loading || going && !slices.ContainsFunc(outcomes, stuck) {
		return false, 0 // most often a target that goes is gone before
	}
	return statusTurned(it.Spec.CanOverride, was, it.Status), 0
}

// Events are those about a written status.
func (t *Target) Events(_ context.Context, was, is *shipper.InstallationTarget) []targetstatus.Events {
	return []targetstatus.Events{{About: is, List: changes(was, is)}}
}

// stuck reports whether something hinders a target in a cluster.
func stuck(o Outcome) bool {
	for _, err := range o.Errors() {
		if reason, _ := retry.ClassifyInCluster(err); reason != shipper.InProgress {
			return true
		}
	}
	return false
}

// Finish lets a target go that is gone from every cluster.
func (t *Target) Finish(ctx context.Context, it *shipper.InstallationTarget, results map[string]Outcome) (ended bool, err error) {
	if it.DeletionTimestamp == nil {
		return false, nil
	}
	left := slices.ContainsFunc(Clusters(it), func(cluster string) bool {
		one, known := results[cluster]
		return !known || !one.leaving || one.err != nil || one.general != nil
	})
	if left {
		return false, nil
	}
	if leaving, err := t.worker.releaseGone(ctx, it); err != nil || !leaving {
		return false, err
	}
	return true, t.worker.gone.release(it, func() error { return targets.Release(ctx, t.client, it) })
}

// Forget a target that is gone.
func (t *Target) Forget(key types.NamespacedName) { t.worker.Forget(key) }
