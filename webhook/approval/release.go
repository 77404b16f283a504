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
	why, step := "", ptr.Deref(a.Spec.Step, 0) // the schema asks for one
	switch p := rel.Status.Progress; {
	case step != rel.Spec.TargetStep:
		why = fmt.Sprintf("Release %s is at step %d", rel.Name, rel.Spec.TargetStep)
	case p == nil || p.Approvals == nil || p.Step != step || p.Wave != position.Of(rel).Wave || p.Move != stamp.Moved(rel).Count ||
		p.ConvergedTime == nil:
		why = fmt.Sprintf("step %d of Release %s is not waiting for approval", step, rel.Name)
		if c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseAdvancing); c != nil && c.Message != "" {
			why += ": " + c.Message
		}
	case rejects && p.Approvals.RejectedBy == user:
		why = fmt.Sprintf("user %q has rejected step %d of Release %s already", user, step, rel.Name)
	case rejects:
	case slices.Contains(p.Approvals.Users, user):
		why = fmt.Sprintf("user %q has approved step %d of Release %s already", user, step, rel.Name)
	case len(p.Approvals.Users) >= int(p.Approvals.Required):
		why = fmt.Sprintf("step %d of Release %s has the approvals that it needs: raise targetStep", step, rel.Name)
	}
	if why == "" {
		return nil
	}
	return response.Invalidate(kind, a.Name, field.ErrorList{field.Invalid(specPath.Child("step"), step, why)})
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
	if step := s.StepAt(at.Wave, at.Step); step != nil && step.AllowsServiceAccounts() {
		return ""
	}
	allow := s.AllowServiceAccountsAt(at.Wave, at.Step)
	if account := stamp.AccountRequester(o.rel); account != "" {
		return rights.AccountRequester("Release "+o.rel.Name, account, allow)
	}
	if rights.IsServiceAccountOf(a.Spec.By.Username, a.Namespace) {
		return rights.AccountApprover(a.Spec.By.Username, allow)
	}
	return ""
}
