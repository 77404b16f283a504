// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/progress"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/response"
)

// asked is c with the matchConditions of blocks. They do not apply to the reconciler where it rolls out what was admitted.
func (w *Webhook) asked(ctx context.Context, req *admission.Request, c block.Change) block.Change {
	if !w.reconciler(req) {
		c.Matches = w.BlockCheck.Requested(ctx, req)
	}
	return c
}

// creation is the change made by a new Release. One whose content was taken again is judged as an edit of its Application: no user's write
// was admitted for it.
func (w *Webhook) creation(ctx context.Context, req *admission.Request, app block.App, rel *shipper.Release) block.Change {
	newest := app.Newest()
	if rel.Spec.Environment.Resources == nil || newest == nil ||
		newest.Spec.Environment.ResourcesDigest == rel.Spec.Environment.ResourcesDigest {
		return w.asked(ctx, req, app.Step(rel))
	}
	c := app.Edit(&newest.Spec.Environment, &rel.Spec.Environment)
	c.Matches = w.BlockCheck.Requested(ctx, req)
	return c
}

// step is the change made by a new targetStep or targetWave. The reconciler moves a Release for a reason of its own, which
// matchConditions bear on, or because it aborts a newer one. With waves it concerns the clusters that are returned.
func (w *Webhook) step(
	ctx context.Context, req *admission.Request, app block.App, rel, old *shipper.Release,
) (block.Change, []string) {
	c, clusters := app.Move(old, rel)
	if w.reconciler(req) && stamp.Moved(rel).Why == progress.NewerAborted {
		return c.And(shipper.RolloutBlockAbort), clusters
	}
	c.Matches = w.BlockCheck.Requested(ctx, req)
	if position.Of(rel).Before(position.Of(old)) {
		return c.And(shipper.RolloutBlockRetreat), clusters
	}
	return c, clusters
}

// judgeIn judges a change that concerns these clusters of a Release with waves. Blocks that name clusters hold these alone: they stop the
// change only where they hold all of its clusters.
func (w *Webhook) judgeIn(a *response.Response, rel *shipper.Release, c block.Change, clusters []string) error {
	v, err := w.BlockCheck.Verdict(rel.Namespace, block.Overrides(rel.Annotations), c)
	if err != nil {
		return err
	}
	v, held := v.Narrowed(rel, clusters)
	if err := w.BlockCheck.Decide(a, resource, rel.Name, overrider(rel), v); err != nil {
		return err
	}
	if names := held.Of(clusters); len(names) > 0 {
		a.Warn("%s stays as it is until its block ends, the others of %d clusters change: %s", block.List(names), len(clusters),
			held[names[0]])
	}
	return nil
}

// beginsPods reports whether a request asks for another run of hooks, tests or checks. It is judged as a step, because they make Pods.
func beginsPods(rel, old *shipper.Release) bool {
	return slices.ContainsFunc([]string{
		shipper.ReleaseHooksRetryAnnotation, shipper.ReleaseTestAnnotation, shipper.ReleaseChecksRetryAnnotation,
	}, func(key string) bool { return rel.Annotations[key] != old.Annotations[key] })
}

// deletion is the change made by the deletion of a Release. The reconciler deletes Releases that are no longer needed, and the newest
// when it has failed.
func (w *Webhook) deletion(
	ctx context.Context, req *admission.Request, app block.App, rel *shipper.Release,
) block.Change {
	newest := app.Newest()
	if fails := newest != nil && newest.Name == rel.Name; w.reconciler(req) && !fails {
		return app.Trimming(rel)
	}
	c := app.Deletion(rel)
	c.Matches = w.BlockCheck.Requested(ctx, req)
	return c
}

func (w *Webhook) reconciler(req *admission.Request) bool {
	return req.UserInfo.Username == w.Guard.Reconciler
}
