// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// maxNamed is how many objects are named in a message, those first that are not on their way to be well; the InstallationTarget names
// more.
const maxNamed = 5

// healthy is the condition Healthy: the sum of what is known of the objects that were installed for a Release. Nil while
// nothing is known anywhere. A workload in progress counts as healthy where its capacity is achieved: completion follows from the
// CapacityTarget, which is written before the InstallationTarget.
func healthy(r strategy.Release) *shipper.Condition {
	if r.Installation == nil {
		return nil
	}
	var total, good int32
	var named, onTheirWay, blank []string
	failed, known := false, false
	for _, c := range r.Installation.Status.Clusters {
		if c.Objects == nil {
			// Where a newer Release writes resources, this one has no objects, and what is known elsewhere counts.
			if ready := shipper.FindCondition(c.Conditions, shipper.TargetReady); ready == nil || ready.Reason != shipper.SupersededByNewer {
				blank = append(blank, c.Name)
			}
			continue
		}
		known = true
		counted, kinds := achievedWorkloads(r.Capacity, c.Name), countedKinds(r.Release)
		total, good = total+c.Objects.Total, good+c.Objects.Healthy+unnamed(c.Objects, counted, kinds)
		for _, o := range c.Objects.Unhealthy {
			if o.Status == string(kstatus.InProgressStatus) && isOf(kinds, o.APIVersion, o.Kind) && slices.Contains(counted, o.Name) {
				good++
				continue
			}
			text := c.Name + ": " + Described(o)
			if o.Status == string(kstatus.InProgressStatus) {
				onTheirWay = append(onTheirWay, text)
				continue
			}
			named = append(named, text)
			failed = failed || o.Status != string(kstatus.UnknownStatus)
		}
	}
	c := &shipper.Condition{Type: shipper.ReleaseHealthy, Status: corev1.ConditionTrue}
	switch {
	case !known:
		return nil
	case total > good:
		switch {
		case failed:
			c.Status, c.Reason = corev1.ConditionFalse, shipper.ObjectsNotHealthy
		case len(onTheirWay) > 0:
			c.Status, c.Reason = corev1.ConditionFalse, shipper.ObjectsInProgress
		default:
			c.Status, c.Reason = corev1.ConditionUnknown, shipper.ObjectsNotHealthy
		}
		c.Message = fmt.Sprintf("%d of %d objects are not healthy: %s", total-good, total, some(append(named, onTheirWay...), int(total-good)))
	case len(blank) > 0:
		slices.Sort(blank)
		c.Status, c.Reason = corev1.ConditionUnknown, shipper.ObjectsNotKnown
		c.Message = "nothing is known yet of objects in clusters: " + strings.Join(blank, ", ")
	}
	return c
}

// achievedWorkloads names the workloads of a Release in a cluster that have all Pods which its CapacityTarget requests; none while some
// workload lacks Pods.
func achievedWorkloads(ct *shipper.CapacityTarget, cluster string) (names []string) {
	if ct == nil || ct.Status.ObservedGeneration != ct.Generation {
		return nil
	}
	for _, c := range ct.Status.Clusters {
		if c.Name == cluster && shipper.ConditionTrue(c.Conditions, shipper.TargetReady) {
			for _, report := range c.Reports {
				names = append(names, report.Owner.Name)
			}
		}
	}
	return names
}

// unnamed counts workloads that are not healthy and that the status does not name, if workloads have achieved their capacity; the named
// ones are the worst.
func unnamed(all *shipper.InstalledObjects, achieved, kinds []string) (count int32) {
	if len(achieved) == 0 || int(all.Total-all.Healthy) <= len(all.Unhealthy) {
		return 0
	}
	for _, kind := range all.Kinds {
		if isOf(kinds, kind.APIVersion, kind.Kind) {
			count += kind.Total - kind.Healthy
		}
	}
	for _, o := range all.Unhealthy {
		if isOf(kinds, o.APIVersion, o.Kind) {
			count--
		}
	}
	return max(0, count)
}

// countedKinds are the kinds whose Pods the CapacityTarget of a Release counts. Its reports name workloads without their kind.
func countedKinds(rel *shipper.Release) []string {
	if rel.Spec.Environment.Chart.Naming == shipper.NamingByApplication {
		return []string{"Deployment", "StatefulSet", "DaemonSet"}
	}
	return []string{"Deployment"}
}

func isOf(kinds []string, apiVersion, kind string) bool {
	return apiVersion == appsv1.SchemeGroupVersion.String() && slices.Contains(kinds, kind)
}

// Described is an object that is not healthy, for people.
func Described(o shipper.UnhealthyObject) string {
	text := fmt.Sprintf("%s %q is %s", o.Kind, o.Name, o.Status)
	if o.Reason != "" {
		text += " (" + o.Reason + ")"
	}
	return text
}

// some of the names, and how many more there are of all.
func some(named []string, all int) string {
	if all <= len(named) && len(named) <= maxNamed {
		return strings.Join(named, "; ")
	}
	shown := named[:min(len(named), maxNamed)]
	if len(shown) == 0 {
		return fmt.Sprintf("%d that are not named", all)
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(shown, "; "), all-len(shown))
}
