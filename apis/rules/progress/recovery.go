// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// recoveries runs the clock of each cluster that had failed and was ready again, also after the position had what it wants. One that misses
// its time fails again: within maxFailures the rollout goes on without it, beyond it has failed.
func (d *decision) recoveries() {
	var late, exposed []string
	var first *strategy.Recovery
	for i := range d.Step.Recovering {
		r := &d.Step.Recovering[i]
		one := d.clockOf(r)
		if one.DeadlineTime == nil || !d.isOver(one.DeadlineTime) {
			continue
		}
		if late, first = append(late, r.Name), cmp.Or(first, r); r.Exposed {
			exposed = append(exposed, r.Name)
		}
	}
	if first == nil {
		return
	}
	failed := d.Step.Failed
	if d.out.Failed != nil {
		failed = d.out.Failed
	}
	failed = slices.Sorted(slices.Values(slices.Concat(failed, late)))
	over := waves.Parse(d.Release).OverBudget(d.strategy, stamp.Clusters(d.Release), failed)
	if len(exposed) > 0 {
		over = strategy.Exposed(exposed)
	}
	if over != "" {
		d.fail(&shipper.ReleaseFailure{
			Reason: shipper.ProgressDeadlineExceeded, Cluster: first.Name, Message: beyond(cmp.Or(first.Message, d.Step.Awaited), over),
		})
		return
	}
	d.out.Failed = failed
	d.out.Recovering = slices.DeleteFunc(d.out.Recovering, func(c shipper.RecoveringCluster) bool {
		return slices.Contains(late, c.Name)
	})
}

// clockOf adds a cluster with its new clock to the decision. The clock begins again with each position, and whenever more Pods are
// available in the cluster than before.
func (d *decision) clockOf(r *strategy.Recovery) shipper.RecoveringCluster {
	one, allowed := r.RecoveringCluster, d.strategy.ProgressDeadline.Value()
	switch {
	case allowed == 0, !r.Judged, d.WritesHeldBy != "", d.Release.Spec.Hold != "", d.progress.Failure != nil, d.progress.MovedBack:
		one.DeadlineTime = nil
	case one.DeadlineTime == nil, d.isNew, r.Available > one.AvailablePods:
		one.DeadlineTime = new(upTo(d.now.Add(allowed)))
	}
	one.AvailablePods = max(one.AvailablePods, r.Available)
	d.out.Recovering = append(d.out.Recovering, one)
	return one
}

// isOver reports whether a deadline has passed, after a shortest time of observation; else it asks for another decision then.
func (d *decision) isOver(deadline *metav1.Time) bool {
	ends := deadline.Time
	if least := d.Since.Add(grace); least.After(ends) {
		ends = least
	}
	wait := ends.Sub(d.now)
	if wait > 0 {
		d.again(wait)
	}
	return wait <= 0
}

// onlyRecovering reports whether all clusters that are awaited and could do what the step wants have deadlines of their own.
func (d *decision) onlyRecovering() bool {
	return slices.ContainsFunc(d.Step.Lacking, func(l strategy.Lack) bool { return l.Recovering }) &&
		!slices.ContainsFunc(d.Step.Lacking, isTimed)
}

// isTimed reports whether the deadline of the step bears on a cluster that is awaited.
func isTimed(l strategy.Lack) bool { return mayMove(l) && !l.Recovering }
