// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/member/targetstatus"
	"shipper.dev/shipper/reconciler/targets"
)

// CapacityTargets are written by the rollout reconciler; their status is written here, and the finalizer of those removed whose Release
// is gone.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=capacitytargets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=releases,verbs=get;list;watch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=capacitytargets/status,verbs=patch
// Changed conditions are reported by events.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Worker scales in application clusters.
type Worker struct{ fleet *fleet.Fleet }

// NewWorker makes a Worker.
func NewWorker(clusters *fleet.Fleet) *Worker { return &Worker{fleet: clusters} }

// Target is how CapacityTargets report what came of the work in their clusters.
type Target struct{ client client.Client }

var _ targetstatus.Kind[*shipper.CapacityTarget, Outcome] = &Target{}

// NewTarget makes a Target.
func NewTarget(c client.Client) *Target { return &Target{client: c} }

// Clusters names those that the status is about.
func (t *Target) Clusters(ct *shipper.CapacityTarget) []string {
	out := make([]string, len(ct.Spec.Clusters))
	for i := range ct.Spec.Clusters {
		out[i] = ct.Spec.Clusters[i].Name
	}
	return out
}

// Prepare ends a target whose Release is gone.
func (t *Target) Prepare(ctx context.Context, ct *shipper.CapacityTarget) (ended bool, err error) {
	return targets.End(ctx, t.client, ct)
}

// Report sets the status.
func (t *Target) Report(
	ct *shipper.CapacityTarget, results map[string]Outcome, now time.Time,
) (turned bool, again time.Duration) {
	outcomes := make([]Outcome, len(ct.Spec.Clusters))
	for i, want := range ct.Spec.Clusters {
		one, known := results[want.Name]
		one.missing, one.want = !known, want
		outcomes[i] = one
	}
	before := said(ct)
	ct.Status = status(ct, outcomes, now)
	return report.Turned(before, said(ct)), 0
}

// Events are those about a written status.
func (t *Target) Events(_ context.Context, was, is *shipper.CapacityTarget) []targetstatus.Events {
	return []targetstatus.Events{{About: is, List: changes(was, is)}}
}

// Finish has nothing to do.
func (t *Target) Finish(context.Context, *shipper.CapacityTarget, map[string]Outcome) (ended bool, err error) {
	return false, nil
}

// Forget has nothing to do.
func (t *Target) Forget(types.NamespacedName) {}
