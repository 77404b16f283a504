// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"cmp"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/retry"
)

// status is the whole new status of a target. general is an error that concerns no cluster in particular.
func status(
	it *shipper.InstallationTarget, outcomes []Outcome, general error, at time.Time,
) shipper.InstallationTargetStatus {
	now := metav1.NewTime(at)
	out := shipper.InstallationTargetStatus{ObservedGeneration: it.Generation}
	if general != nil {
		reason, _ := retry.ClassifyInCluster(general)
		out.ObservedGeneration, out.Clusters = it.Status.ObservedGeneration, it.Status.Clusters
		out.Conditions = shipper.SetCondition(it.Status.Conditions, shipper.Condition{
			Type: shipper.TargetOperational, Status: corev1.ConditionFalse, Reason: reason, Message: retry.Brief(general),
		}, now)
		return out
	}
	var staying []report.Cluster
	for _, o := range outcomes {
		if o.leaving && o.err == nil {
			continue
		}
		known := find(it.Status.Clusters, o.cluster)
		if o.missing {
			out.ObservedGeneration = it.Status.ObservedGeneration
			if known.Name == "" {
				continue
			}
			out.Clusters = append(out.Clusters, known)
			if slices.Contains(it.Spec.Clusters, o.cluster) || it.DeletionTimestamp != nil {
				staying = append(staying, report.Cluster{Name: known.Name, Conditions: known.Conditions})
			}
			continue
		}
		if o.leaving && known.Name == "" && fleet.Pending(o.err) {
			// It was gone from there before Shipper started. Naming the cluster again until it connects would be no news, and
			// a Shipper that dies after each write would never get further.
			out.ObservedGeneration = it.Status.ObservedGeneration
			continue
		}
		c := clusterStatus(known, o, now)
		out.Clusters = append(out.Clusters, c)
		if !o.leaving || it.DeletionTimestamp != nil {
			staying = append(staying, report.Cluster{Name: c.Name, Conditions: c.Conditions})
		}
		if fleet.Pending(o.err) || fleet.Keeps(o.err, known.Conditions) || stands(known, o) {
			out.ObservedGeneration = it.Status.ObservedGeneration
		}
	}
	sortByName(out.Clusters)
	out.Clusters = bounded(out.Clusters)
	out.Conditions = report.Overall(it.Status.Conditions, staying, now)
	return out
}

// stands reports whether what is wrong in a cluster is still all that can be said of it: while a chart is tried again that could not be
// had, it is known why.
func stands(old shipper.ClusterInstallationStatus, o Outcome) bool {
	ready := shipper.FindCondition(old.Conditions, shipper.TargetReady)
	return errors.Is(o.err, errLoading) && ready != nil && ready.Status == corev1.ConditionFalse && ready.Reason != shipper.InProgress
}

// clusterStatus is the new status of one cluster. The status of a cluster that connects for the first time stays
// as it was; whether something is installed in one that cannot be reached, too.
func clusterStatus(
	old shipper.ClusterInstallationStatus, o Outcome, now metav1.Time,
) (out shipper.ClusterInstallationStatus) {
	if fleet.Keeps(o.err, old.Conditions) || stands(old, o) {
		return old
	}
	out = shipper.ClusterInstallationStatus{
		Name: o.cluster, Objects: cmp.Or(o.objects, old.Objects), Hooks: old.Hooks, Test: old.Test, CheckTests: old.CheckTests,
		Diff: old.Diff,
	}
	defer o.reported(&out)
	if o.hooks != nil {
		out.Hooks = o.hooks
	}
	if o.tested != nil {
		out.Test = o.tested
	}
	if o.checked != nil {
		out.CheckTests = o.checked
	}
	if o.err == nil {
		out.Status, out.ClusterScoped, out.Drift = shipper.InstallationStatusInstalled, o.scoped, o.drift
		for _, c := range []shipper.Condition{{Type: shipper.TargetOperational, Status: corev1.ConditionTrue}, o.readyOf()} {
			old.Conditions = shipper.SetCondition(old.Conditions, c, now)
		}
		out.Conditions = old.Conditions
		return out
	}
	out.Conditions, out.ClusterScoped = report.Failed(old.Conditions, o.err, now), mergeScoped(old.ClusterScoped, o.scoped)
	operational := shipper.ConditionTrue(out.Conditions, shipper.TargetOperational)
	ready := shipper.FindCondition(out.Conditions, shipper.TargetReady)
	out.Message, out.Drift = ready.Message, old.Drift
	switch {
	case !operational:
		out.Status = old.Status
	case ready.Reason != shipper.InProgress:
		out.Status = shipper.InstallationStatusFailed
	}
	return out
}

// statusTurned reports whether a changed status must be written at once. The number of healthy objects may lag while some are in progress
// and none is worse, for a Deployment is in progress while it is scaled; and so may the health of a target that is not the newest, and
// that it is not.
func statusTurned(newest bool, was, is shipper.InstallationTargetStatus) bool {
	if !newest {
		was.ObservedGeneration = is.ObservedGeneration
	}
	now := unhealthyIn(is)
	return newest && len(now) == 0 || slices.ContainsFunc(now, unhealthy) ||
		!equality.Semantic.DeepEqual(withoutObjects(was), withoutObjects(is))
}

// unhealthyIn are the objects that are not healthy, of all clusters.
func unhealthyIn(s shipper.InstallationTargetStatus) []shipper.UnhealthyObject {
	var out []shipper.UnhealthyObject
	for _, c := range s.Clusters {
		if c.Objects != nil {
			out = append(out, c.Objects.Unhealthy...)
		}
	}
	return out
}

// unhealthy reports whether an object that is not healthy is not on its way there either.
func unhealthy(o shipper.UnhealthyObject) bool { return o.Status != string(kstatus.InProgressStatus) }

// withoutObjects is a status that does not say how objects are.
func withoutObjects(s shipper.InstallationTargetStatus) shipper.InstallationTargetStatus {
	s.Clusters = slices.Clone(s.Clusters)
	for i := range s.Clusters {
		s.Clusters[i].Objects = nil
	}
	return s
}

// withClusters adds an empty entry for each name that has none.
func withClusters(list []shipper.ClusterInstallationStatus, names []string) []shipper.ClusterInstallationStatus {
	out := slices.Clone(list)
	for _, name := range names {
		if find(out, name).Name == "" {
			out = append(out, shipper.ClusterInstallationStatus{Name: name})
		}
	}
	sortByName(out)
	return out
}

// find returns the entry of a cluster, or an empty one.
func find(list []shipper.ClusterInstallationStatus, name string) shipper.ClusterInstallationStatus {
	for _, c := range list {
		if c.Name == name {
			return c
		}
	}
	return shipper.ClusterInstallationStatus{}
}

func sortByName(list []shipper.ClusterInstallationStatus) {
	slices.SortFunc(list, func(a, b shipper.ClusterInstallationStatus) int { return cmp.Compare(a.Name, b.Name) })
}
