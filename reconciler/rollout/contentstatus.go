// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/events"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/selection"
)

// takenResources is status.resources after a pass: content counts as taken when a Release has it.
func takenResources(s *scope, p templatePlan, a applied) *shipper.TakenResources {
	switch {
	case s.app.Spec.Template.Resources == nil:
		return nil
	case p.restoring || p.pending != "" || p.unready.reason != "" || p.stampErr != nil || a.create != nil:
		return lastTaken(s)
	}
	return s.content.taken
}

// resourcesSelected is the condition ResourcesSelected; nil when nothing new is known.
func resourcesSelected(s *scope, p templatePlan, a applied) *shipper.Condition {
	c := &shipper.Condition{Type: shipper.ApplicationResourcesSelected, Status: corev1.ConditionFalse}
	live, problem := s.content.live, s.content.problem()
	switch {
	case p.restoring:
		return nil
	case problem != nil:
		c.Reason, c.Message = problem.Reason, problem.Message
	case live == nil:
		return nil
	case s.content.isTaken() && heldBy(p, a) != "":
		c.Reason, c.Message = shipper.RolloutsBlocked, heldBy(p, a)
	default:
		c.Status, c.Message = corev1.ConditionTrue, live.Message
		if digest := s.content.digest; digest != "" && digest != live.Digest {
			c.Message += fmt.Sprintf("; since a rollback or an abort, content with the digest %s is placed. Other content is placed when it "+
				"changes, or now: kubectl annotate app %s -n %s --overwrite %s=<anything new>", selection.Short(digest), s.app.Name,
				s.app.Namespace, shipper.AppResourcesRefreshAnnotation)
		}
	}
	return c
}

// contentChanges are the events of what is new about the content of resources.
func contentChanges(was, is shipper.ApplicationStatus) []report.Event {
	before := shipper.FindCondition(was.Conditions, shipper.ApplicationResourcesSelected)
	after := shipper.FindCondition(is.Conditions, shipper.ApplicationResourcesSelected)
	switch {
	case after == nil:
		return nil
	case after.Reason != "" && (before == nil || before.Reason != after.Reason):
		return []report.Event{events.Warning(after.Reason, "Select", "%s", after.Message)}
	case after.Reason == "" && is.Resources != nil && (was.Resources == nil || was.Resources.Digest != is.Resources.Digest):
		return []report.Event{events.Normal(shipper.ApplicationResourcesSelected, "Select", "%s", after.Message)}
	}
	return nil
}
