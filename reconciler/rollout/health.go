// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// maxNamed is how many objects are named in a message, those first that are not on their way to be well; the InstallationTarget names
// more.
const maxNamed = 5

// healthy is the condition Healthy: the sum of what is known of the objects that were installed for a Release. Nil while
// nothing is known anywhere.
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
		total, good = total+c.Objects.Total, good+c.Objects.Healthy
		for _, o := range c.Objects.Unhealthy {
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
	return fmt.Sprintf("%s; and %d more", strings.Join(shown, "; "), all-len(shown))
}
