// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/rights"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/response"
)

// ofRelease is a Release that an Approval names.
type ofRelease struct{ rel *shipper.Release }

// stamp makes the Release the owner: the Approval goes with it, and does not count for the next one of that name.
func (o ofRelease) stamp(a *shipper.Approval) {
	a.Spec.Move = stamp.Moved(o.rel).Count
	if a.Spec.Wave == nil && position.HasWaves(o.rel) {
		a.Spec.Wave = new(position.Of(o.rel).Wave)
	}
	response.Label(&a.ObjectMeta, shipper.AppLabel, o.rel.Labels[shipper.AppLabel])
	response.Label(&a.ObjectMeta, shipper.ReleaseLabel, o.rel.Name)
	a.OwnerReferences = []metav1.OwnerReference{stamp.ReleaseReference(o.rel)}
}

func (o ofRelease) judge(a *shipper.Approval) error {
	rel, user, rejects := o.rel, a.Spec.By.Username, a.Spec.Decision == shipper.DecisionReject
	if !rejects && slices.Contains(stamp.Requesters(rel), user) {
		asked := "asked for Release " + rel.Name
		if name := stamp.OverrideBy(rel, user); name != "" && rel.Annotations[shipper.ReleaseRequestedByAnnotation] != user {
			asked = fmt.Sprintf("written ResourceOverride %s, of which Release %s has a copy", name, rel.Name)
		}
		return response.Forbid(resource, a.Name, fmt.Sprintf("user %q has %s: another user has to approve it", user, asked))
	}
	if why := o.byAccount(a); !rejects && why != "" {
		return response.Forbid(resource, a.Name, why)
	}
	if err := o.judgeWave(a); err != nil {
		return err
	}
	if err := o.judgeTask(a); err != nil {
		return err
	}
	why, step := "", ptr.Deref(a.Spec.Step, 0) // the schema asks for one
	awaited, what := o.awaited(a, step)
	switch {
	case step != rel.Spec.TargetStep:
		why = fmt.Sprintf("Release %s is at step %d", rel.Name, rel.Spec.TargetStep)
	case awaited == nil:
		why = what + " is not waiting for approval"
		if c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseAdvancing); c != nil && c.Message != "" {
			why += ": " + c.Message
		}
		if a.Spec.Task == "" && rel.Status.Progress.AwaitsBeginning() {
			why += "; to approve the beginning of the wave, set task: " + shipper.ApprovalBefore
		}
	case rejects && awaited.RejectedBy == user:
		why = fmt.Sprintf("user %q has rejected %s already", user, what)
	case rejects:
	case slices.Contains(awaited.Users, user):
		why = fmt.Sprintf("user %q has approved %s already", user, what)
	case len(awaited.Users) >= int(awaited.Required):
		why = what + " has the approvals that it needs"
		if a.Spec.Task == "" {
			why += ": raise targetStep"
		}
	}
	if why == "" {
		return nil
	}
	return response.Invalidate(kind, a.Name, field.ErrorList{field.Invalid(specPath.Child("step"), step, why)})
}

// awaited are the approvals of what an Approval approves, and what that is; nil while it waits for none.
func (o ofRelease) awaited(a *shipper.Approval, step int32) (is *shipper.ReleaseApprovals, what string) {
	rel, at := o.rel, position.Of(o.rel)
	p := rel.Status.Progress
	if p != nil && (p.Step != step || p.Wave != at.Wave || p.Move != stamp.Moved(rel).Count) {
		p = nil
	}
	if a.Spec.Task == shipper.ApprovalBefore {
		what = fmt.Sprintf("the beginning of wave %s of Release %s", position.WaveName(rel.Spec.Environment.Strategy, at.Wave), rel.Name)
		if p != nil {
			is = p.BeforeApprovals
		}
		return is, what
	}
	what = fmt.Sprintf("step %d of Release %s", step, rel.Name)
	if p != nil && p.ConvergedTime != nil {
		is = p.Approvals
	}
	return is, what
}

// judgeTask refuses a task that a Release does not have.
func (o ofRelease) judgeTask(a *shipper.Approval) error {
	s, at, task := o.rel.Spec.Environment.Strategy, position.Of(o.rel), a.Spec.Task
	path := specPath.Child("task")
	switch tasks := s.BeforeTasksAt(at.Wave, 0); {
	case task == "":
		return nil
	case task != shipper.ApprovalBefore:
		return response.Invalidate(kind, a.Name, field.ErrorList{field.NotSupported(path, task, []string{shipper.ApprovalBefore})})
	case !position.HasWaves(o.rel):
		return response.Invalidate(kind, a.Name, field.ErrorList{field.Invalid(path, task, fmt.Sprintf(
			"Release %s has no waves: leave it out to approve its step", o.rel.Name))})
	case tasks == nil || tasks.Approvals == 0:
		return response.Invalidate(kind, a.Name, field.ErrorList{field.Invalid(path, task, fmt.Sprintf(
			"wave %s begins without approvals: leave it out to approve its step", position.WaveName(s, at.Wave)))})
	}
	return nil
}

// judgeWave refuses an Approval of another wave than the one that the Release is in: its author has not seen this one.
func (o ofRelease) judgeWave(a *shipper.Approval) error {
	s, at, why := o.rel.Spec.Environment.Strategy, position.Of(o.rel), ""
	switch is := a.Spec.Wave; {
	case is == nil, *is == at.Wave && position.HasWaves(o.rel):
		return nil
	case !position.HasWaves(o.rel):
		why = fmt.Sprintf("Release %s has no waves: leave it out", o.rel.Name)
	default:
		why = fmt.Sprintf("Release %s is in wave %d (%s)", o.rel.Name, at.Wave, position.WaveName(s, at.Wave))
	}
	return response.Invalidate(kind, a.Name, field.ErrorList{field.Invalid(specPath.Child("wave"), *a.Spec.Wave, why)})
}

// byAccount says why an Approval does not count because a ServiceAccount of the namespace asked for the Release, or approves it; empty if
// neither does, or the gate allows it.
func (o ofRelease) byAccount(a *shipper.Approval) string {
	s, at := o.rel.Spec.Environment.Strategy, position.Of(o.rel)
	step := s.StepAt(at.Wave, at.Step)
	allow, allowed := s.AllowServiceAccountsAt(at.Wave, at.Step), step != nil && step.AllowsServiceAccounts()
	if a.Spec.Task == shipper.ApprovalBefore {
		tasks := s.BeforeTasksAt(at.Wave, 0)
		allow, allowed = shipper.BeforeTasksAllowServiceAccounts, tasks != nil && tasks.AllowServiceAccounts
	}
	if allowed {
		return ""
	}
	if account := stamp.AccountRequester(o.rel); account != "" {
		return rights.AccountRequester("Release "+o.rel.Name, account, allow)
	}
	if rights.IsServiceAccountOf(a.Spec.By.Username, a.Namespace) {
		return rights.AccountApprover(a.Spec.By.Username, allow)
	}
	return ""
}
