// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/rights"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// maxMessage bounds, in bytes, how much of another controller's condition, or of checks, a message repeats.
const maxMessage = 256

// gates are the stages of the step's readinessGates, its checks, the wait of its wave and its approvals; none when the step asks for none.
// A step at or before the achieved one has passed its readinessGates and its checks; its approvals may still be withdrawn.
func (r *rollout) gates() []stage {
	return slices.Concat(r.readiness(), r.checks(), r.wait(), r.approvals())
}

// checks is the stage of the step's checks.
func (r *rollout) checks() []stage {
	rel := r.contender().Release
	if len(check.Of(rel)) == 0 {
		return nil
	}
	out := stage{
		condition: shipper.StrategyContenderAchievedChecks,
		waiting: func(state *shipper.ReleaseStrategyState) *shipper.StrategyState {
			return &state.WaitingForChecks
		},
		achieved: checkedBefore(rel) || r.Checks != nil && r.Checks.Passed,
		message:  "its checks begin",
		reason:   shipper.ChecksNotPassed,
	}
	if r.Checks != nil {
		out.message = shortened(r.Checks.Awaited)
	}
	return []stage{out}
}

func (r *rollout) readiness() []stage {
	if len(r.step.ReadinessGates) == 0 {
		return nil
	}
	rel := r.contender().Release
	var closed []string
	if position.Achieved(rel).Before(position.Of(rel)) {
		closed = closedGates(rel, r.step.ReadinessGates)
	}
	return []stage{{
		condition: shipper.StrategyContenderAchievedReadiness,
		waiting: func(state *shipper.ReleaseStrategyState) *shipper.StrategyState {
			return &state.WaitingForReadiness
		},
		achieved: len(closed) == 0,
		message: fmt.Sprintf("release %q lacks conditions that others set in its status: %s",
			rel.Name, strings.Join(closed, "; ")),
		reason: shipper.GatesNotReady,
	}}
}

// checkedBefore reports whether a step needs no checks: the Release is complete, or went back to it from one that it had achieved.
// A step that a user goes forward to is checked again.
func checkedBefore(rel *shipper.Release) bool {
	return !position.Achieved(rel).Before(position.Of(rel)) && (Complete(rel) || stamp.WentBack(rel))
}

// approvals is the stage of the approvals that the step's gate asks for. They count as long as the Release is not moved, so a step that is
// gone back to needs them again.
func (r *rollout) approvals() []stage {
	if r.step.RequiredApprovals() == 0 {
		return nil
	}
	rel, asked := r.contender().Release, approvalsOfStep(r.contender().Release, r.step)
	a, rejection := asked.count(rel, r.Approvals)
	out := asked.stage(rel, a, rejection)
	out.condition = shipper.StrategyContenderAchievedApprovals
	return []stage{out}
}

// askedApprovals are the approvals that a step, or the beginning of a wave, asks for.
type askedApprovals struct {
	// task is that of the Approvals that count.
	task string
	// required is how many users have to approve; accounts is true if ServiceAccounts of the namespace may ask for it and approve, by field.
	required int32
	accounts bool
	field    string
	// what is approved, for users.
	what string
}

// approvalsOfStep are those that a Release's requested step asks for.
func approvalsOfStep(rel *shipper.Release, step *shipper.RolloutStrategyStep) askedApprovals {
	s, at := rel.Spec.Environment.Strategy, position.Of(rel)
	return askedApprovals{
		required: step.RequiredApprovals(), accounts: step.AllowsServiceAccounts(), field: s.AllowServiceAccountsAt(at.Wave, at.Step),
		what: at.In(s),
	}
}

// stage is that of the approvals, without its condition.
func (w askedApprovals) stage(rel *shipper.Release, a shipper.ReleaseApprovals, rejection *shipper.Approval) stage {
	message := fmt.Sprintf("%s has %d of %d approvals", w.what, len(a.Users), a.Required)
	if account := stamp.AccountRequester(rel); account != "" && !w.accounts {
		message += "; " + rights.AccountRequester("Release "+rel.Name, account, w.field)
	}
	if len(a.Users) > 0 {
		message += ": " + strings.Join(a.Users, ", ")
	}
	if rejection != nil {
		message = fmt.Sprintf("%s was rejected by %s%s: until the Approval %s is deleted, or targetStep changes",
			w.what, a.RejectedBy, because(rejection.Spec.Reason), rejection.Name)
	}
	return stage{
		waiting: func(state *shipper.ReleaseStrategyState) *shipper.StrategyState {
			return &state.WaitingForApproval
		},
		achieved: a.Enough(a.Required),
		message:  message,
		reason:   shipper.ApprovalsNeeded,
	}
}

// maxApprovers bounds the users in a status. No step asks for more.
const maxApprovers = 10

// ApprovalsOf are the approvals of a Release's requested step, and the rejection if there is one.
func ApprovalsOf(rel *shipper.Release, step *shipper.RolloutStrategyStep, all []shipper.Approval) (
	out shipper.ReleaseApprovals, no *shipper.Approval,
) {
	return approvalsOfStep(rel, step).count(rel, all)
}

// count counts the approvals of the position of a Release. The users who asked for the Release do not count, nor does what was said of an
// earlier Release with its name, or of another task, nor, unless the gate allows it, ServiceAccounts of the namespace. Nobody does where
// it is not known who asked.
func (w askedApprovals) count(rel *shipper.Release, all []shipper.Approval) (out shipper.ReleaseApprovals, no *shipper.Approval) {
	out.Required = w.required
	move, requesters := stamp.Moved(rel).Count, stamp.Requesters(rel)
	isBarred := stamp.HasUnreadClaim(rel) || !w.accounts && stamp.AccountRequester(rel) != "" || isUnnoted(rel)
	for i := range all {
		a := &all[i].Spec
		if a.Release != rel.Name || a.Step == nil || *a.Step != rel.Spec.TargetStep || a.Move != move || a.Task != w.task ||
			a.By.Username == "" || a.Wave != nil && *a.Wave != position.Of(rel).Wave || all[i].DeletionTimestamp != nil ||
			!stamp.OwnedBy(&all[i], rel) {
			continue
		}
		switch {
		case a.Decision == shipper.DecisionReject:
			if no == nil || firstOf(&all[i], no) { // one answer for any order, or status is written for ever
				no, out.RejectedBy = &all[i], a.By.Username
			}
		case isBarred, !w.accounts && rights.IsServiceAccountOf(a.By.Username, rel.Namespace):
		case !slices.Contains(requesters, a.By.Username) && !slices.Contains(out.Users, a.By.Username):
			out.Users = append(out.Users, a.By.Username)
		}
	}
	slices.Sort(out.Users)
	out.Users = out.Users[:min(len(out.Users), maxApprovers)]
	return out, no
}

// isUnnoted reports whether the last move of a Release between waves has no note, because no webhook answered. The count of moves is then
// too low, and an Approval of the same step in another wave would count.
func isUnnoted(rel *shipper.Release) bool {
	moved := stamp.Moved(rel)
	_, to := stamp.Ends(moved)
	return to != position.Of(rel) && (position.Of(rel).Wave > 0 || position.HasWaves(rel) && moved.Count > 0)
}

func firstOf(a, b *shipper.Approval) bool {
	return cmp.Or(cmp.Compare(a.Spec.By.Username, b.Spec.By.Username), cmp.Compare(a.Name, b.Name)) < 0
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// closedGates describes each of these conditions that is not True.
func closedGates(rel *shipper.Release, types []string) []string {
	var out []string
	for _, conditionType := range types {
		switch c := shipper.FindCondition(rel.Status.Conditions, conditionType); {
		case c == nil:
			out = append(out, conditionType+" is not there yet")
		case c.Status != corev1.ConditionTrue:
			detail := strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
			if detail = strings.TrimPrefix(detail, ": "); detail != "" {
				detail = ", " + shortened(detail)
			}
			out = append(out, fmt.Sprintf("%s is %s%s", conditionType, c.Status, detail))
		}
	}
	return out
}

// shortened cuts another controller's text to maxMessage bytes.
func shortened(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "…"
}
