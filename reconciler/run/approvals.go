// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/shipyard"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// approvals are those that name a run, the oldest first. Those that were judged are older than others: that was written into them since.
func (r *Reconciler) approvals(ctx context.Context, run *shipper.SequenceRun) ([]shipper.Approval, error) {
	var all shipper.ApprovalList
	if err := r.client.List(ctx, &all, client.InNamespace(run.Namespace), client.MatchingFields{approvalsOf: run.Name}); err != nil {
		return nil, fmt.Errorf("listing the Approvals of SequenceRun %s/%s: %w", run.Namespace, run.Name, err)
	}
	slices.SortFunc(all.Items, func(a, b shipper.Approval) int {
		return cmp.Or(cmp.Compare(isNew(&a), isNew(&b)), stamp.CompareCreation(&a, &b))
	})
	return all.Items, nil
}

// isNew is 1 for an Approval that was not judged yet, and 0 for others.
func isNew(a *shipper.Approval) int {
	if shipper.FindCondition(a.Status.Conditions, shipper.ApprovalCounted) == nil {
		return 1
	}
	return 0
}

// recordApprovals writes into each new Approval of a run whether it counts, or why not: before it is counted, so that the reason is that of
// the moment. An Approval is judged once, by the run as the API server has it.
func (r *Reconciler) recordApprovals(ctx context.Context, run *shipper.SequenceRun) error {
	all, err := r.approvals(ctx, run)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(a shipper.Approval) bool {
		return isNew(&a) == 0 || !a.DeletionTimestamp.IsZero()
	})
	if len(all) == 0 {
		return nil
	}
	if err := r.readLive(ctx, run); err != nil {
		return err
	}
	was := slices.Clone(all)
	shipyard.RecordApprovals(all, run, metav1.NewTime(r.clock.Now().Truncate(time.Second)))
	for i := range all {
		if _, err := report.PatchStatus(ctx, r.client, &all[i], &was[i]); err != nil {
			return fmt.Errorf("writing the status of Approval %s/%s: %w", was[i].Namespace, was[i].Name, err)
		}
	}
	return nil
}
