// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/release/blocks"
	"shipper.dev/shipper/reconciler/release/diary"
)

// tell persists the status of every Release and then tells the events of the pass. A Release whose status cannot be
// written does not keep the others from theirs.
func (r *Reconciler) tell(ctx context.Context, s *scope, p plan, d done, now metav1.Time) []error {
	var errs []error
	for i := range s.history.Live {
		rel := s.history.Live[i].Release
		report.Emit(r.recorder, rel, written(d, rel, p.verdict))
		errs = append(errs, r.persist(ctx, rel, status(s, p, d, i, now)))
	}
	for _, rel := range s.history.Broken {
		errs = append(errs, r.persist(ctx, rel, brokenStatus(rel, now)))
	}
	return errs
}

// written are the events of what was written for a Release, and that it was in spite of blocks. What targets are asked for is
// the doing of the newest Release, whosever they are.
func written(d done, rel *shipper.Release, v block.Verdict) []report.Event {
	out := d.events[rel.Name]
	if names := blocks.Overridden(v); names != "" && (len(out) > 0 || d.asked && d.newest == rel.Name) {
		out = append(out, diary.Override(names))
	}
	return out
}

// persist writes a status that differs from what it was, unless the Release was changed since it was read, and then
// tells what is new in it.
func (r *Reconciler) persist(ctx context.Context, rel *shipper.Release, is shipper.ReleaseStatus) error {
	if equality.Semantic.DeepEqual(rel.Status, is) {
		return nil
	}
	next := rel.DeepCopy()
	next.Status = is
	if err := r.client.Status().Patch(ctx, next, onlyIfUnchanged(rel)); err != nil {
		return fmt.Errorf("writing the status of release %s/%s: %w", rel.Namespace, rel.Name, err)
	}
	report.Emit(r.recorder, rel, changes(rel, is))
	return nil
}
