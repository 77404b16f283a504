// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// after edits a strategy so that its steps go on by themselves.
func after(durations ...shipper.Duration) func(*shipper.RolloutStrategy) {
	return func(s *shipper.RolloutStrategy) {
		for i, d := range durations {
			s.Steps[i].After = d
		}
	}
}

// contends rolls version 0.0.1 out, and then applies 0.0.2 with the three steps of vanguard, edited.
func (s *fixture) contends(edits ...func(*shipper.RolloutStrategy)) (incumbent, contender string) {
	s.Helper()
	s.applies(s.application("0.0.1", 4, allIn))
	incumbent = s.Release(0)
	s.Completes(incumbent)
	s.Edits(func(app *shipper.Application) {
		app.Spec.Template = s.application("0.0.2", 4, vanguard).Spec.Template
		for _, edit := range edits {
			edit(app.Spec.Template.Strategy)
		}
	})
	return incumbent, s.Release(1)
}

// advancing waits until the condition Advancing of a Release at a step has a status and a reason.
func (s *fixture) advancing(release string, step int32, want string) {
	s.Helper()
	s.Eventually("how "+release+" advances", fmt.Sprintf("step %d, %s", step, want), func() (string, error) {
		rel, err := s.Get(release)
		c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseAdvancing)
		if err != nil || c == nil || rel.Status.ObservedGeneration != rel.Generation {
			return "not said", err
		}
		return fmt.Sprintf("step %d, %s %s", rel.Spec.TargetStep, c.Status, c.Reason), nil
	})
}

// setHold sets or, with an empty reason, ends the hold of a Release.
func (s *fixture) setHold(release, reason string) error {
	patch := fmt.Appendf(nil, `{"spec":{"hold":%q}}`, reason)
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: release}}
	return s.User.Patch(s.Ctx, rel, client.RawPatch(types.MergePatchType, patch))
}

// TestStepsGoOnByThemselves has three steps with after. No user moves the Release, and it completes.
func TestStepsGoOnByThemselves(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		_, contender := s.contends(after("1s", "0s"))
		served := s.serving()
		s.Completes(contender)
		s.advancing(contender, 2, "False Complete")
		if least := served(); least < 4 {
			t.Errorf("a cluster served with %d endpoints on the way, want 4 at least", least)
		}
		s.readyPods(contender, 4)
		rel, err := s.Get(contender)
		s.Must("reading the release", err)
		m := stamp.Moved(rel)
		if m.Count != 2 || m.From != 1 || m.To != 2 || m.Why != "StepDue" || !strings.HasSuffix(m.By, ":shipper-mgmt-cluster") {
			t.Errorf("the last move is %+v", m)
		}
	})
}

// TestAKilledReconcilerRequestsEachStepOnce is not parallel: all tests share the reconciler. It is killed in the middle of the first pause,
// and while the second step becomes due.
func TestAKilledReconcilerRequestsEachStepOnce(t *testing.T) {
	s := begin(t, []string{west}, []string{westRegion})
	_, contender := s.contends(after("10s", "1s"))
	s.advancing(contender, 0, "True Soaking")
	due := func() (time.Time, error) {
		rel, err := s.Get(contender)
		if err != nil || rel.Status.Progress == nil || rel.Status.Progress.Next == nil {
			return time.Time{}, err
		}
		return rel.Status.Progress.Next.Time.Time, nil
	}
	first, err := due()
	s.Must("reading when the step is due", err)
	world.Pod.Reconciler.Kill()
	s.Must("starting another", world.Pod.StartReconciler(s.Ctx))
	s.Eventually("targetStep", "1", func() (string, error) {
		rel, err := s.Get(contender)
		return fmt.Sprint(rel.Spec.TargetStep), err
	})
	rel, err := s.Get(contender)
	s.Must("reading the release", err)
	if at := stamp.Moved(rel).Time.Time; at.Before(first) {
		t.Errorf("it was due at %s and moved at %s", first, at)
	}
	s.Eventually("the second pause", "has an end", func() (string, error) {
		rel, err := s.Get(contender)
		if at, _ := due(); rel.Spec.TargetStep == 2 || at.After(first) {
			return "has an end", err
		}
		return "none yet", err
	})
	world.Pod.Reconciler.Kill()
	s.Must("starting another", world.Pod.StartReconciler(s.Ctx))
	s.Completes(contender)
	if rel, err = s.Get(contender); err != nil || stamp.Moved(rel).Count != 2 {
		t.Errorf("it was moved %d times, %v", stamp.Moved(rel).Count, err)
	}
}

// TestNothingGoesOnAfterGoingBack lowers targetStep while a step soaks, holds the Release and blocks it.
func TestNothingGoesOnAfterGoingBack(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		_, contender := s.contends(after("0s", "1h"))
		s.advancing(contender, 1, "True Soaking")
		s.Steps(contender, 0)
		s.advancing(contender, 0, "False HeldAfterGoingBack")
		s.WaitsForCommand(contender, 0)
		s.readyPods(contender, 1)

		s.Must("holding the release", s.setHold(contender, "ann looks at it"))
		s.Steps(contender, 1)
		s.advancing(contender, 1, "False HeldByUser")
		rel, err := s.Get(contender)
		s.Must("reading the release", err)
		if by := rel.Annotations[shipper.ReleaseHeldByAnnotation]; by == "" || rel.Spec.Hold != "ann looks at it" {
			t.Errorf("held by %q for %q", by, rel.Spec.Hold)
		}
		s.Must("ending the hold", s.setHold(contender, ""))
		s.advancing(contender, 1, "True Soaking")
		s.Steps(contender, 2)
		s.Completes(contender)
	})
}

// TestABlockHoldsAnAutomaticStep creates a block while a step soaks. The step is due when the block ends, and goes on at once.
func TestABlockHoldsAnAutomaticStep(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		_, contender := s.contends(after("5s", "1h"))
		s.advancing(contender, 0, "True Soaking")
		rb := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "dns"}}
		rb.Spec.Message = "DNS issues"
		s.Must("creating a block", s.User.Create(s.Ctx, rb))
		s.advancing(contender, 0, "False HeldByBlock")
		if err := s.setHold(contender, "wait"); err != nil {
			t.Errorf("a hold is always admitted: %v", err)
		}
		s.forbidden("ending the hold under the block", s.setHold(contender, ""), "rollouts blocked by")
		s.Must("deleting the block", s.User.Delete(s.Ctx, rb))
		s.Eventually("the hold", "ended", func() (string, error) {
			if err := s.setHold(contender, ""); err != nil {
				return err.Error(), nil
			}
			return "ended", nil
		})
		s.advancing(contender, 1, "True Soaking")
	})
}

// TestAGateIsPassedWithTheVerbSkip has a gate whose step is not achieved: another program has not verified it.
func TestAGateIsPassedWithTheVerbSkip(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		incumbent, contender := s.contends(func(st *shipper.RolloutStrategy) {
			st.Steps[0].Gate, st.Steps[0].ReadinessGates = &shipper.StepGate{}, []string{verified}
		})
		s.advancing(contender, 0, "True Checking")
		dev, _ := s.as("dev")
		for _, step := range []int32{1, 2} {
			s.forbidden("passing the gate", dev.TryStep(contender, step), "step 0 (staging) is a gate and is not achieved", verified,
				"the verb skip")
		}
		skipper, _ := s.as("skipper", rbacv1.PolicyRule{
			APIGroups: []string{shipper.GroupName}, Resources: []string{"releases"}, Verbs: []string{"skip"}, ResourceNames: []string{contender},
		})
		skipper.Steps(contender, 1)
		s.WaitsForCommand(contender, 1)
		s.readyPods(incumbent, 2)
		s.Steps(contender, 0)
		s.forbidden("passing a gate that was skipped", dev.TryStep(contender, 1), "is a gate and is not achieved")
		s.verifies(contender, "True", "")
		s.advancing(contender, 0, "False HeldAfterGoingBack")
		dev.Steps(contender, 1)
		s.WaitsForCommand(contender, 1)
	})
}

// TestADeadlineTakesBothClustersBack has an image that cannot be pulled in one cluster.
func TestADeadlineTakesBothClustersBack(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.applies(s.application("0.0.1", 4, allIn))
		incumbent := s.Release(0)
		s.Completes(incumbent)
		manifest := s.application("0.0.2", 4, vanguard).Spec.Template
		manifest.Strategy.Steps[0].Capacity.Contender = 0
		manifest.Strategy.Steps[0].After = "0s"
		manifest.Strategy.ProgressDeadline, manifest.Strategy.OnFailure = "30s", shipper.OnFailureRetreat
		manifest.ValuesPerCluster = []shipper.ValuesFor{{
			Name: east, Values: &shipper.ChartValues{"image": map[string]any{"tag": "broken"}},
		}}
		s.Edits(func(app *shipper.Application) { app.Spec.Template = manifest })
		contender := s.Release(1)
		s.advancing(contender, 1, "True Moving")
		s.advancing(contender, 0, "False HeldAfterGoingBack")
		s.readyPods(incumbent, 4)
		s.endpoints(4)
		rel, err := s.Get(contender)
		s.Must("reading the release", err)
		failed := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseFailed)
		if failed == nil || failed.Status != "True" || failed.Reason != shipper.ProgressDeadlineExceeded ||
			!strings.Contains(failed.Message, east) {
			t.Errorf("the condition Failed is %+v", failed)
		}
		for range 3 { // a program that applies the same manifest again changes nothing
			s.Edits(func(app *shipper.Application) { app.Spec.Template = manifest })
		}
		if history, err := s.History(s.App); err != nil || !slices.Equal(history, []string{incumbent, contender}) {
			t.Errorf("history %v, %v", history, err)
		}
		s.advancing(contender, 0, "False HeldAfterGoingBack")
	})
}

// TestAFailedRolloutIsAborted refuses the manifest that failed until it changes, or is to be tried again.
func TestAFailedRolloutIsAborted(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.applies(s.application("0.0.1", 4, allIn))
		incumbent := s.Release(0)
		s.Completes(incumbent)
		manifest := s.application("0.0.2", 4, vanguard).Spec.Template
		manifest.Strategy.ProgressDeadline, manifest.Strategy.OnFailure = "30s", shipper.OnFailureAbort
		(*manifest.Values)["image"] = map[string]any{"tag": "broken"}
		apply := func(retry string) error {
			return s.TryEdit(func(app *shipper.Application) {
				app.Spec.Template = *manifest.DeepCopy()
				if retry != "" {
					metav1.SetMetaDataAnnotation(&app.ObjectMeta, shipper.AppFailedRetryAnnotation, retry)
				}
			})
		}
		s.Must("applying", apply(""))
		contender := s.Release(1)
		s.Eventually("history", incumbent, func() (string, error) {
			history, err := s.History(s.App)
			app := &shipper.Application{}
			if err == nil {
				err = world.Management.Get(s.Ctx, s.Key(s.App), app)
			}
			if len(history) == 1 && app.Spec.Template.Chart.Version == "0.0.2" {
				return "the template is still the one that failed", err
			}
			return strings.Join(history, " "), err
		})
		s.noPods(contender) // the Release of the next try has the same name
		s.readyPods(incumbent, 4)
		s.endpoints(4)
		for range 2 {
			s.refused("applying it again", apply(""), "this failed (ProgressDeadlineExceeded) at step 0", "as Release "+contender,
				"change it, or set")
		}
		s.Must("applying it to be tried again", apply("once more"))
		again := s.Release(1)
		s.pulls(again, 1)
		s.WaitsForCommand(again, 0)
	})
}

// TestTheFirstReleaseServesAtOnce has a strategy with firstRelease Immediate. The next Release goes step by step.
func TestTheFirstReleaseServesAtOnce(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		app := s.application("0.0.1", 4, vanguard)
		app.Spec.Template.Strategy.FirstRelease = shipper.FirstReleaseImmediate
		app.Spec.Template.Strategy.Steps[0].Gate = &shipper.StepGate{}
		s.applies(app)
		first := s.Release(0)
		s.Completes(first)
		s.Edits(func(app *shipper.Application) { (*app.Spec.Template.Values)["note"] = "second" })
		s.WaitsForCommand(s.Release(1), 0)
		s.readyPods(first, 4)
	})
}

// TestAGateThatAsksForApprovals has two of them: the requester's is refused, the second user's opens the gate. After a move back neither
// counts, and a rejection closes it.
func TestAGateThatAsksForApprovals(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		dev, _ := s.as("dev")
		approve := rbacv1.PolicyRule{APIGroups: []string{shipper.GroupName}, Resources: []string{"releases"}, Verbs: []string{"approve"}}
		ann, _ := s.as("ann", approve)
		bob, _ := s.as("bob", approve)
		requester, _ := s.as("requester", approve)
		s.applies(s.application("0.0.1", 4, allIn))
		s.Completes(s.Release(0))
		requester.Edits(func(app *shipper.Application) {
			app.Spec.Template = s.application("0.0.2", 4, vanguard).Spec.Template
			app.Spec.Template.Strategy.Steps[0].Gate = &shipper.StepGate{Approvals: 2}
			app.Spec.Template.Strategy.Steps[0].After = "0s"
			app.Spec.Template.Strategy.Steps[1].After = "1h"
		})
		contender := s.Release(1)
		s.advancing(contender, 0, "False AwaitingApproval")
		s.forbidden("an approval without the verb", dev.approves(contender, 0, ""), "the verb approve on releases")
		s.forbidden("the requester's approval", requester.approves(contender, 0, ""), "has asked for Release")
		s.refused("an approval of another step", ann.approves(contender, 1, ""), "is at step 0")
		s.forbidden("passing the gate", dev.TryStep(contender, 1), "is a gate and is not achieved", "0 of 2 approvals")
		s.Must("approving", ann.approves(contender, 0, ""))
		s.Eventually("the approvals", "[ann]", s.approvers(contender))
		s.refused("approving twice", ann.approves(contender, 0, ""), "has approved step 0", "already")
		s.Must("approving", bob.approves(contender, 0, ""))
		s.advancing(contender, 1, "True Soaking") // the second approval opens the gate, and after is 0s

		dev.Steps(contender, 0)
		s.advancing(contender, 0, "False HeldAfterGoingBack")
		s.Eventually("step 0 waits for new approvals", "[]", s.approvers(contender))
		s.Must("refusing", bob.approves(contender, 0, shipper.DecisionReject))
		s.Must("approving again", ann.approves(contender, 0, ""))
		s.forbidden("passing a refused step", dev.TryStep(contender, 1), "is a gate and is not achieved")
	})
}

// approves creates an Approval as the fixture's user.
func (s *fixture) approves(release string, step int32, decision shipper.ApprovalDecision) error {
	a := &shipper.Approval{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, GenerateName: "approval-"},
		Spec:       shipper.ApprovalSpec{Release: release, Step: &step, Decision: decision},
	}
	return s.User.Create(s.Ctx, a)
}

// approvers are the users whose approvals count; none as long as the target step waits for no approval.
func (s *fixture) approvers(release string) func() (string, error) {
	return func() (string, error) {
		rel, err := s.Get(release)
		if err != nil {
			return "", err
		}
		p := rel.Status.Progress
		if p == nil || p.Approvals == nil || p.ConvergedTime == nil || p.Step != rel.Spec.TargetStep {
			return "none", nil
		}
		return fmt.Sprint(p.Approvals.Users), nil
	}
}
