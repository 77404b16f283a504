// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/resources"
	"shipper.dev/shipper/reconciler/retry"
)

// place places the resources of a target in a cluster.
func (w *Worker) place(
	ctx context.Context, it *shipper.InstallationTarget, cluster string, all *resources.Siblings, changes []override.Change,
) Outcome {
	out := Outcome{cluster: cluster}
	policy, err := w.driftPolicy(ctx, it.Namespace, it.Labels[shipper.AppLabel])
	if err != nil {
		out.general = err
		return out
	}
	member, err := w.fleet.Get(ctx, cluster)
	if err != nil {
		out.err = err
		return out
	}
	ctx, cancel := member.Context(ctx, fleet.WorkTimeout)
	defer cancel()
	task := resources.TaskIn(member, it, all, policy)
	task.Overrides = changes
	return placedOutcome(out, w.resources.Place(ctx, task))
}

// Siblings are the targets with resources of an Application, which a pass in a cluster works on one after the other.
func (w *Worker) Siblings(ctx context.Context, app types.NamespacedName, cluster string) (*resources.Siblings, error) {
	return w.resources.Siblings(ctx, app, cluster)
}

// placedOutcome is out with what came of a pass over resources.
func placedOutcome(out Outcome, r resources.Result) Outcome {
	out.err, out.general, out.events = r.Err, r.General, r.Events
	out.objects, out.drift, out.later, out.placed = r.Objects, r.Drift, r.Later, &r
	return out
}

// reported sets in the status of a cluster what a pass over resources knows, and charts do not.
func (o Outcome) reported(out *shipper.ClusterInstallationStatus) {
	if o.placed == nil || retry.Unanswered(o.err) { // of a cluster that does not answer the last observation stays
		return
	}
	out.Drift, out.Diff = o.drift, o.placed.Diff
	if o.placed.Superseded {
		out.Objects = nil
	}
}

// readyOf is the condition of a cluster in which nothing is wrong.
func (o Outcome) readyOf() shipper.Condition {
	c := shipper.Condition{Type: shipper.TargetReady, Status: corev1.ConditionTrue}
	if o.placed != nil {
		c.Reason, c.Message = o.placed.Reason, o.placed.Message
	}
	return c
}
