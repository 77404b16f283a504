// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// progressOf is nil for a Release that does nothing by itself, and while that is not known.
func progressOf(rel *shipper.Release) *progressView {
	is, c := rel.Status.Progress, shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseAdvancing)
	if is == nil || c == nil || rel.Status.ObservedGeneration < rel.Generation {
		return nil
	}
	p := &progressView{
		State: c.Reason, Message: c.Message, Hold: rel.Spec.Hold, HeldBy: rel.Annotations[shipper.ReleaseHeldByAnnotation],
		Approvals: is.Approvals, BeforeApprovals: is.BeforeApprovals,
	}
	if is.Next != nil {
		p.NextStep, p.NextTime = &is.Next.Step, is.Next.Time.Time
	}
	if is.DeadlineTime != nil {
		p.Deadline = is.DeadlineTime.Time
	}
	if is.WaitEndTime != nil {
		p.WaitEnd = is.WaitEndTime.Time
	}
	if failed := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseFailed); failed != nil && failed.Status == corev1.ConditionTrue {
		p.Failed, p.FailedAt = failed.Message, failed.LastTransitionTime.Time
		p.Failure = is.Failure
	}
	return p
}

// describe is a step's name, with how it ends.
func (s stepState) describe() string {
	out := s.Name
	if s.Gate {
		out += " ‖ gate"
	}
	var needs []string
	if s.Approvals > 0 {
		needs = append(needs, fmt.Sprintf("%d approvals", s.Approvals))
	}
	if n := len(s.Checks); n == 1 {
		needs = append(needs, "1 check")
	} else if n > 1 {
		needs = append(needs, fmt.Sprintf("%d checks", n))
	}
	if len(needs) > 0 {
		out += " (" + strings.Join(needs, ", ") + ")"
	}
	if s.After != "" {
		out += " " + s.After
	}
	return out
}

// next says when the rollout goes on by itself, and when it fails; none when neither will happen. p may be nil.
func (p *progressView) next(steps []stepState, now time.Time) []string {
	switch {
	case p == nil:
		return nil
	case p.NextStep != nil && len(steps) == 0: // resources have waves alone
		return []string{"by itself to the next wave, as soon as nothing holds it"}
	case p.NextStep != nil && p.State == shipper.AdvancingSoaking:
		return []string{fmt.Sprintf("by itself at %s, %s, to step %d (%s)", clockOf(p.NextTime), left(p.NextTime, now), *p.NextStep,
			nameOf(steps, *p.NextStep))}
	case p.NextStep != nil:
		return []string{fmt.Sprintf("to step %d (%s) when nothing holds it; it is due at %s", *p.NextStep, nameOf(steps, *p.NextStep),
			clockOf(p.NextTime))}
	case p.WaitEnd.After(now) && p.Failed == "":
		return []string{fmt.Sprintf("not before %s, %s: the wave waits", clockOf(p.WaitEnd), left(p.WaitEnd, now))}
	case !p.Deadline.IsZero():
		return []string{fmt.Sprintf("before %s, %s, or it fails, unless more pods are available by then", clockOf(p.Deadline),
			left(p.Deadline, now))}
	}
	return nil
}

// failures says why the rollout has failed; none when it has not. p may be nil.
func (p *progressView) failures(steps []stepState, now time.Time) []string {
	if p == nil || p.Failed == "" {
		return nil
	}
	target := int32(max(slices.IndexFunc(steps, func(s stepState) bool { return s.Target }), 0))
	if text := p.checkFailure(steps, target, age(p.FailedAt, now)); text != "" {
		return []string{text}
	}
	return []string{fmt.Sprintf("%s ago: %s", age(p.FailedAt, now), p.failure())}
}

// failure says why the rollout has failed, with what is done about it if it has not gone back.
func (p *progressView) failure() string {
	if p.State == shipper.AdvancingFailed {
		return p.Message
	}
	return p.Failed
}

// failedText says why a Release has failed, and what was done about it; empty when it has not.
func failedText(rel *shipper.Release) string {
	p := progressOf(rel)
	if p == nil || p.Failed == "" {
		return ""
	}
	text := p.failure()
	if p.State != shipper.AdvancingFailed && p.Message != "" {
		text += "; " + p.Message
	}
	return fmt.Sprintf("release %s has failed: %s", rel.Name, text)
}

// awaitsFailed describes a Release that lacks nothing but clusters that have failed within maxFailures; empty if it is none.
func awaitsFailed(rel *shipper.Release) string {
	if p := progressOf(rel); p != nil && p.State == shipper.AdvancingAwaitingFailedClusters {
		return fmt.Sprintf("release %s is not complete: %s", rel.Name, p.Message)
	}
	return ""
}

// abortedAfter describes a Release that failed and was aborted after rel, now the newest, was made; empty when there was none.
func abortedAfter(app *shipper.Application, rel *shipper.Release) string {
	f := stamp.Failed(app)
	if f == nil || !f.Time.After(rel.CreationTimestamp.Time) {
		return ""
	}
	why := f.Reason
	if f.Check != "" {
		why += ", check " + f.Check
	}
	return fmt.Sprintf("release %s has failed at %s (%s), and was aborted at %s", f.Release, stamp.FailedAt(f), why, clockOf(f.Time.Time))
}

// holds says who holds the rollout, and why; none when no user does. p may be nil.
func (p *progressView) holds() []string {
	if p == nil || p.Hold == "" {
		return nil
	}
	if p.HeldBy == "" {
		return []string{p.Hold}
	}
	return []string{fmt.Sprintf("%s (%s)", p.Hold, p.HeldBy)}
}

func clockOf(t time.Time) string { return t.Local().Format("15:04:05") }

func left(t, now time.Time) string {
	if rest := t.Sub(now); rest > 0 {
		return "in " + duration.HumanDuration(rest)
	}
	return "now"
}

func nameOf(steps []stepState, i int32) string {
	if int(i) < len(steps) {
		return steps[i].Name
	}
	return "unknown"
}
