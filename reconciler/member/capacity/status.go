// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/member/inplace"
	"shipper.dev/shipper/reconciler/retry"
)

// Outcome is what came of a pass in one cluster.
type Outcome struct {
	// missing is set where no pass was made since the target changed.
	missing bool
	// want is the capacity asked for.
	want shipper.ClusterCapacityTarget
	// available Pods, those that are unhealthy, how all of them are, and the condition Ready.
	available int32
	sad       []shipper.PodStatus
	reports   []shipper.ClusterCapacityReport
	ready     shipper.Condition
	// achieved is the achievedPercent of the worst of several workloads; nil if that is availableReplicas of totalReplicaCount.
	achieved *int32
	// err is why the cluster could not be read or written.
	err error
}

// outcome keeps of an observation what the status says: Pods would take much memory.
func outcome(s observation) Outcome {
	out := Outcome{want: s.want, err: s.err}
	if s.err != nil {
		return out
	}
	if len(s.deployments) == 1 {
		d := &s.deployments[0]
		out.available, out.sad = d.Status.AvailableReplicas, unhealthyPods(s.pods)
		out.reports = []shipper.ClusterCapacityReport{podReport(d.Name, s.pods)}
	}
	out.ready = ready(s)
	return out
}

// status is the whole new status of a target.
func status(ct *shipper.CapacityTarget, sights []Outcome, at time.Time) shipper.CapacityTargetStatus {
	now := metav1.NewTime(at)
	out := shipper.CapacityTargetStatus{ObservedGeneration: ct.Generation}
	var unknown []report.Cluster
	for _, s := range sights {
		var old shipper.ClusterCapacityStatus
		for _, c := range ct.Status.Clusters {
			if c.Name == s.want.Name {
				old = c
			}
		}
		if s.missing {
			out.ObservedGeneration = ct.Status.ObservedGeneration
			if old.Name == "" {
				unknown = append(unknown, report.Cluster{Name: s.want.Name})
			} else {
				out.Clusters = append(out.Clusters, old)
			}
			continue
		}
		out.Clusters = append(out.Clusters, clusterStatus(old, s, now))
		if fleet.Pending(s.err) || fleet.Keeps(s.err, old.Conditions) {
			out.ObservedGeneration = ct.Status.ObservedGeneration
		}
	}
	slices.SortFunc(out.Clusters, func(a, b shipper.ClusterCapacityStatus) int { return cmp.Compare(a.Name, b.Name) })
	out.Conditions = report.Overall(ct.Status.Conditions, append(clusters(out.Clusters), unknown...), now)
	return out
}

// clusterStatus is the new status of one cluster. The status of a cluster that connects for the first time, or that cannot be
// reached, stays as it was.
func clusterStatus(old shipper.ClusterCapacityStatus, s Outcome, now metav1.Time) shipper.ClusterCapacityStatus {
	if fleet.Keeps(s.err, old.Conditions) {
		return old
	}
	out := shipper.ClusterCapacityStatus{Name: s.want.Name}
	if s.err != nil {
		out = *old.DeepCopy()
		out.Name = s.want.Name
		out.Conditions = report.Failed(old.Conditions, s.err, now)
		return out
	}
	out.AvailableReplicas, out.SadPods, out.Reports = s.available, s.sad, s.reports
	out.AchievedPercent = Achieved(out.AvailableReplicas, s.want.TotalReplicaCount)
	if s.achieved != nil {
		out.AchievedPercent = *s.achieved
	}
	operational := shipper.Condition{Type: shipper.TargetOperational, Status: corev1.ConditionTrue}
	out.Conditions = shipper.SetCondition(old.Conditions, operational, now)
	out.Conditions = shipper.SetCondition(out.Conditions, s.ready, now)
	return out
}

// ready reports whether a cluster that could be read has the capacity asked for, and if not, why.
func ready(s observation) shipper.Condition {
	switch {
	case len(s.deployments) == 0 && s.want.TotalReplicaCount == 0: // the chart renders to nothing, or to no Pods
		return shipper.Condition{Type: shipper.TargetReady, Status: corev1.ConditionTrue}
	case len(s.deployments) != 1:
		return no(shipper.MissingDeployment, "expected one Deployment of this release, found %d", len(s.deployments))
	}
	d, desired := &s.deployments[0], s.desired()
	available := d.Status.AvailableReplicas
	switch {
	case s.keptServing:
		return no(shipper.InProgress, "%d pods stay instead of %d until other releases serve in place of those in traffic", s.replicas(), desired)
	case s.scaled:
		return no(shipper.InProgress, "scaling from %d to %d pods", s.replicas(), desired)
	case d.Generation > d.Status.ObservedGeneration && !s.unscaled(d):
		return no(shipper.InProgress, "the cluster has not seen the change to %d pods yet", desired)
	case available == desired:
		return shipper.Condition{Type: shipper.TargetReady, Status: corev1.ConditionTrue}
	}
	if message, stuck := stuck(d); stuck {
		return no(shipper.DeploymentStuck, "%s", message)
	}
	if d.Spec.Paused && d.Status.Replicas < desired {
		return no(shipper.DeploymentStuck, "%s", inplace.Paused(d))
	}
	if sad := unhealthy(s.pods); len(sad) > 0 {
		return no(shipper.PodsNotReady, "%d/%d: %s", len(sad), desired, summarize(sad))
	}
	return no(shipper.InProgress, "%d of %d pods are available", available, desired)
}

// no is the condition of a cluster that does not have the capacity asked for.
func no(reason, format string, args ...any) shipper.Condition {
	return shipper.Condition{
		Type: shipper.TargetReady, Status: corev1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...),
	}
}

// unscaled reports whether a change that the Deployment's controller has not seen yet leaves capacity as it was. An annotation, such as
// the mark of an installation that is taken over, makes a new generation, too.
func (s observation) unscaled(d *appsv1.Deployment) bool {
	desired := s.desired()
	return s.wasReady && s.replicas() == desired && d.Status.Replicas == desired && d.Status.AvailableReplicas == desired
}

// stuck reports whether the Deployment's own controller reports a failure.
func stuck(d *appsv1.Deployment) (message string, stuck bool) {
	for _, c := range d.Status.Conditions {
		failed := c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue
		stopped := c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse
		if failed || stopped {
			return report.Shorten(c.Message, retry.MaxBrief), true
		}
	}
	return "", false
}

// said is what others may wait for in a target's status.
func said(ct *shipper.CapacityTarget) report.Status {
	return report.Status{
		Generation: ct.Status.ObservedGeneration, Conditions: ct.Status.Conditions, Clusters: clusters(ct.Status.Clusters),
	}
}

// Errors are those met.
func (o Outcome) Errors() []error {
	if o.err == nil {
		return nil
	}
	return []error{fmt.Errorf("cluster %q: %w", o.want.Name, o.err)}
}
