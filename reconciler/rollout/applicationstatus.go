// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/summary"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/reconciler/events"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/retry"
	"shipper.dev/shipper/reconciler/selection"
)

// maxMessage bounds a condition's message.
const maxMessage = 32 * 1024

// applicationStatus is the new status after a pass that did not abort.
func applicationStatus(s *scope, p templatePlan, a applied, now metav1.Time) shipper.ApplicationStatus {
	rels := s.history.Releases()
	if p.create != nil && a.create == nil {
		rels = append(rels, p.create)
	}
	if a.err() == nil {
		rels = slices.DeleteFunc(rels, func(rel *shipper.Release) bool { return slices.Contains(p.remove, rel) })
	}
	out := shipper.ApplicationStatus{
		ObservedGeneration: s.app.Generation, Conditions: s.app.Status.Conditions, History: names(rels),
		Resources: takenResources(s, p, a), Summary: summary.OfApplication(rels),
	}
	if s.app.Spec.Template.Resources == nil {
		out.Conditions = events.Without(out.Conditions, shipper.ApplicationResourcesSelected)
	}
	conditions := []shipper.Condition{
		{Type: shipper.ApplicationAborting, Status: corev1.ConditionFalse},
		applicationBlocked(p, a), validHistory(p), releaseSynced(p, a), rollingOut(s.app, rels, p, a),
	}
	for _, c := range []shipper.Condition{failed(s.app, rels), rolledBack(rels)} { // said of those to which it happened once
		if c.Status == corev1.ConditionTrue || shipper.FindCondition(out.Conditions, c.Type) != nil {
			conditions = append(conditions, c)
		}
	}
	if c := resourcesSelected(s, p, a); c != nil {
		conditions = append(conditions, *c)
	}
	for _, c := range conditions {
		c.Message = report.Shorten(c.Message, maxMessage)
		out.Conditions = shipper.SetCondition(out.Conditions, c, now)
	}
	return out
}

// abortingStatus is the status before the template is taken back. Other conditions wait for the next pass.
func abortingStatus(s *scope, p templatePlan, now metav1.Time) shipper.ApplicationStatus {
	out := shipper.ApplicationStatus{
		ObservedGeneration: s.app.Generation, Conditions: s.app.Status.Conditions, History: names(s.history.Releases()),
		Resources: s.app.Status.Resources, Summary: s.app.Status.Summary,
	}
	message := fmt.Sprintf("abort in progress, returning state to release %q", p.abort.Name)
	for _, conditionType := range []string{shipper.ApplicationAborting, shipper.ApplicationRollingOut} {
		c := shipper.Condition{Type: conditionType, Status: corev1.ConditionTrue, Message: message}
		out.Conditions = shipper.SetCondition(out.Conditions, c, now)
	}
	return out
}

// heldStatus is the status while what an abort brings back may not be placed: only the reason is new.
func heldStatus(s *scope, now metav1.Time) shipper.ApplicationStatus {
	out := *s.app.Status.DeepCopy()
	if c := resourcesSelected(s, templatePlan{}, applied{}); c != nil {
		c.Message = report.Shorten("the abort is held: "+c.Message, maxMessage)
		out.Conditions = shipper.SetCondition(out.Conditions, *c, now)
	}
	return out
}

// applicationBlocked is the condition Blocked. The gate may know of a block before this reconciler does.
func applicationBlocked(p templatePlan, a applied) shipper.Condition {
	c := shipper.Condition{Type: shipper.ApplicationBlocked, Status: corev1.ConditionFalse, Message: p.blocked}
	if c.Message == "" {
		c.Message = retry.Blocked(a.err())
	}
	if c.Message != "" {
		c.Status, c.Reason = corev1.ConditionTrue, shipper.RolloutsBlocked
	}
	return c
}

func validHistory(p templatePlan) shipper.Condition {
	c := shipper.Condition{Type: shipper.ApplicationValidHistory, Status: corev1.ConditionTrue}
	if !p.isOrdered() {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, p.disorder.reason, p.disorder.message
	}
	return c
}

// releaseSynced is the condition ReleaseSynced: the newest Release has the template's environment.
func releaseSynced(p templatePlan, a applied) shipper.Condition {
	c := shipper.Condition{Type: shipper.ApplicationReleaseSynced, Status: corev1.ConditionTrue}
	if reason, message := failure(p, a); reason != "" {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, reason, message
	} else if said := heldBy(p, a); said != "" {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, shipper.RolloutsBlocked, said
	}
	return c
}

// heldBy says which blocks keep the template from becoming a Release; empty when none do.
func heldBy(p templatePlan, a applied) string {
	if p.pending != "" {
		return p.pending
	}
	return retry.Blocked(a.create)
}

// failure says why the Release that the template asks for could not be made; the reason is empty when it could, or was
// not tried because of blocks.
func failure(p templatePlan, a applied) (reason, message string) {
	problem, unkept := errors.AsType[*selection.Problem](a.create)
	broken, unread := errors.AsType[*chart.Error](a.create)
	switch {
	case p.restoring:
		return p.disorder.reason, p.disorder.message
	case unkept:
		return problem.Reason, problem.Message
	case unread:
		return broken.Reason, broken.Message
	case a.create != nil && retry.Blocked(a.create) == "":
		return shipper.CreateReleaseFailed, fmt.Sprintf("could not create a new release: %q", a.create)
	case p.stampErr != nil:
		return shipper.CreateReleaseFailed, fmt.Sprintf("could not create a new release: %q", p.stampErr)
	}
	return p.unready.reason, p.unready.message
}

// rollingOut is the condition RollingOut. rels are what there is after the pass, oldest first.
func rollingOut(app *shipper.Application, rels []*shipper.Release, p templatePlan, a applied) shipper.Condition {
	c := shipper.Condition{Type: shipper.ApplicationRollingOut, Status: corev1.ConditionTrue}
	if reason, message := failure(p, a); reason != "" {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, reason, message
		return c
	}
	if len(rels) == 0 {
		c.Status = corev1.ConditionUnknown
		c.Message = fmt.Sprintf("no contender release found for application %q", app.Name)
		return c
	}
	contender := rels[len(rels)-1]
	incumbent := slices.Index(strategy.Roles(rels), strategy.Incumbent)
	switch {
	case strategy.Complete(contender):
		c.Status, c.Message = corev1.ConditionFalse, fmt.Sprintf("Release %q is active", contender.Name)
	case incumbent >= 0:
		c.Message = fmt.Sprintf("Transitioning from %q to %q", rels[incumbent].Name, contender.Name)
	default:
		c.Message = fmt.Sprintf("Rolling out initial release %q", contender.Name)
	}
	return c
}

// failed is the condition Failed, of the newest Release or of one that was aborted since it failed.
func failed(app *shipper.Application, rels []*shipper.Release) shipper.Condition {
	c := shipper.Condition{Type: shipper.ApplicationFailed, Status: corev1.ConditionFalse}
	if len(rels) > 0 {
		newest := rels[len(rels)-1]
		is := shipper.FindCondition(newest.Status.Conditions, shipper.ReleaseFailed)
		if is != nil && is.Status == corev1.ConditionTrue {
			c.Status, c.Reason, c.Message = is.Status, is.Reason, fmt.Sprintf("Release %q: %s", newest.Name, is.Message)
			return c
		}
	}
	if f := stamp.Failed(app); f != nil {
		c.Status, c.Reason = corev1.ConditionTrue, f.Reason
		c.Message = fmt.Sprintf("Release %q failed at %s and was aborted; this ends when another environment completes", f.Release,
			stamp.FailedAt(f))
	}
	return c
}

// rolledBack is the condition RolledBack: the newest Release has the environment of an earlier one because a user requested
// that. Of Applications that never were rolled back it is not said.
func rolledBack(rels []*shipper.Release) shipper.Condition {
	c := shipper.Condition{Type: shipper.ApplicationRolledBack, Status: corev1.ConditionFalse}
	if len(rels) == 0 {
		return c
	}
	newest := rels[len(rels)-1]
	if goal := newest.Annotations[shipper.ReleaseRollbackOfAnnotation]; goal != "" {
		c.Status, c.Message = corev1.ConditionTrue, fmt.Sprintf("Release %q has the environment of %q", newest.Name, goal)
	}
	return c
}

func names(rels []*shipper.Release) []string {
	var out []string
	for _, rel := range rels {
		out = append(out, rel.Name)
	}
	return out
}
