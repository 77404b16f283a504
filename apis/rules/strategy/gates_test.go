// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestApprovalsCountForThePositionOfTheRelease(t *testing.T) {
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{
		Name: "web-1-0", UID: "now", Annotations: map[string]string{
			shipper.ReleaseRequestedByAnnotation: "requester",
			shipper.ReleaseRunAnnotation:         `{"namespace":"shop","run":"web-1","uid":"u","requesters":["starter"]}`,
		},
	}}
	rel.Spec.TargetStep = 1
	step := &shipper.RolloutStrategyStep{Gate: &shipper.StepGate{Approvals: 2}}
	by := func(user string, change ...func(*shipper.Approval)) shipper.Approval {
		a := shipper.Approval{
			ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "now"}}},
			Spec:       shipper.ApprovalSpec{Release: "web-1-0", Step: new(int32(1)), By: shipper.ApprovalUser{Username: user}},
		}
		for _, f := range change {
			f(&a)
		}
		return a
	}
	rejects := func(a *shipper.Approval) { a.Spec.Decision = shipper.DecisionReject }
	for name, test := range map[string]struct {
		all  []shipper.Approval
		want shipper.ReleaseApprovals
	}{
		"of two users": {
			[]shipper.Approval{by("bob"), by("ann")}, shipper.ReleaseApprovals{Required: 2, Users: []string{"ann", "bob"}},
		},
		"of one user, twice": {
			[]shipper.Approval{by("ann"), by("ann")}, shipper.ReleaseApprovals{Required: 2, Users: []string{"ann"}},
		},
		"of the user who asked for the Release": {
			[]shipper.Approval{by("requester"), by("ann")}, shipper.ReleaseApprovals{Required: 2, Users: []string{"ann"}},
		},
		"of a user who asked for the run that made it": {
			[]shipper.Approval{by("starter"), by("ann")}, shipper.ReleaseApprovals{Required: 2, Users: []string{"ann"}},
		},
		"of nobody": {
			[]shipper.Approval{by("")}, shipper.ReleaseApprovals{Required: 2},
		},
		"of another step, position or Release, or deleted": {
			[]shipper.Approval{
				by("ann", func(a *shipper.Approval) { a.Spec.Step = new(int32) }),
				by("bob", func(a *shipper.Approval) { a.Spec.Move = 7 }),
				by("cay", func(a *shipper.Approval) { a.Spec.Release = "web-0-0" }),
				by("dan", func(a *shipper.Approval) { a.DeletionTimestamp = &metav1.Time{} }),
				by("eve", func(a *shipper.Approval) { a.OwnerReferences[0].UID = "an earlier Release of this name" }),
				by("fay", func(a *shipper.Approval) { a.OwnerReferences = nil }),
			}, shipper.ReleaseApprovals{Required: 2},
		},
		"of more users than a status has room for": {
			[]shipper.Approval{
				by("a"), by("b"), by("c"), by("d"), by("e"), by("f"), by("g"), by("h"), by("i"), by("j"), by("k"), by("l"),
			}, shipper.ReleaseApprovals{Required: 2, Users: strings.Split("abcdefghij", "")},
		},
		"refused by two users": {
			[]shipper.Approval{by("bob", rejects), by("requester", rejects), by("ann")},
			shipper.ReleaseApprovals{Required: 2, Users: []string{"ann"}, RejectedBy: "bob"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				got, _ := strategy.ApprovalsOf(rel, step, test.all)
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("approvals (-want +got):\n%s", diff)
				}
				slices.Reverse(test.all) // a cache lists in any order
			}
		})
	}
}

// A user with the roles edit and approve changes an Application as a ServiceAccount of its namespace, and approves.
func TestServiceAccountsOfTheNamespaceAreNoSecondPerson(t *testing.T) {
	const own, other = "system:serviceaccount:shop:ci", "system:serviceaccount:argocd:sync"
	const run = `{"namespace":"shop","run":"web-1","uid":"u","requesters":["cay"]}`
	for sentence, tc := range map[string]struct {
		requester, run, approver string
		allow, counts            bool
	}{
		"a user asked, a user approves":                                 {"cay", "", "ann", false, true},
		"a ServiceAccount asked":                                        {own, "", "ann", false, false},
		"a ServiceAccount asked, which the gate allows":                 {own, "", "ann", true, true},
		"one of another namespace asked":                                {other, "", "ann", false, true},
		"a ServiceAccount approves":                                     {"cay", "", own, false, false},
		"a ServiceAccount approves, which the gate allows":              {"cay", "", own, true, true},
		"a ServiceAccount asked and approves, which the gate allows":    {own, "", own, true, false},
		"the runner wrote it for a user":                                {own, run, "ann", false, true},
		"it is not known for whom the runner wrote it":                  {own, `{"requesters":["ann"],` + run[1:], "bob", true, false},
		"the runner wrote it for a user, who approves":                  {own, run, "cay", false, false},
		"the runner of another namespace wrote it for a ServiceAccount": {other, strings.Replace(run, "cay", own, 1), "ann", false, false},
	} {
		rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-1-0", UID: "now", Annotations: map[string]string{
				shipper.ReleaseRequestedByAnnotation: tc.requester, shipper.ReleaseRunAnnotation: tc.run,
			},
		}}
		a := shipper.Approval{
			ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "now"}}},
			Spec:       shipper.ApprovalSpec{Release: "web-1-0", Step: new(int32), By: shipper.ApprovalUser{Username: tc.approver}},
		}
		step := &shipper.RolloutStrategyStep{Gate: &shipper.StepGate{Approvals: 1, AllowServiceAccounts: tc.allow}}
		got, _ := strategy.ApprovalsOf(rel, step, []shipper.Approval{a})
		if counts := len(got.Users) == 1; counts != tc.counts {
			t.Errorf("%s: it counts: %t", sentence, counts)
		}
	}
}

// TestAStepThatIsGoneForwardToAgainIsCheckedAgain has a Release that achieved step 1, went back, and was raised at once.
func TestAStepThatIsGoneForwardToAgainIsCheckedAgain(t *testing.T) {
	for sentence, tc := range map[string]struct {
		moved   string
		to      int32
		state   *check.State
		waiting shipper.StrategyState
	}{
		"it was gone back to":                      {`{"from":2,"to":1,"count":3}`, 1, nil, shipper.StrategyStateFalse},
		"it was raised again":                      {`{"from":0,"to":1,"count":3}`, 1, nil, shipper.StrategyStateTrue},
		"it was raised again, and its checks fail": {`{"from":0,"to":1,"count":3}`, 1, &check.State{Awaited: "bad"}, shipper.StrategyStateTrue},
		"it was raised again, and they passed":     {`{"from":0,"to":1,"count":3}`, 1, &check.State{Passed: true}, shipper.StrategyStateFalse},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := &recorder{app: newApp(), t: t, said: map[string]string{}}
			s.create(allIn, 10, "a")
			s.create([]shipper.RolloutStrategyStep{vanguard[0], checkedStep(vanguard[1]), vanguard[2]}, 10, "a")
			s.checks = &check.State{Passed: true}
			s.goTo(1)
			s.checks = tc.state
			rel := s.newest()
			rel.Annotations[shipper.ReleaseMovedAnnotation] = tc.moved
			s.goTo(tc.to)
			if is := rel.Status.Strategy.State.WaitingForChecks; is != tc.waiting {
				t.Errorf("waitingForChecks is %s", is)
			}
		})
	}
}

func TestApprovalsOfAStepCountInTheWaveInWhichTheyWereGiven(t *testing.T) {
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Name: "web-1-0", UID: "now", Annotations: map[string]string{}}}
	step := &shipper.RolloutStrategyStep{Gate: &shipper.StepGate{Approvals: 1}}
	rel.Spec.Environment.Strategy = &shipper.RolloutStrategy{
		Steps: []shipper.RolloutStrategyStep{*step, {}}, Waves: []shipper.Wave{{Name: "a"}, {Name: "b"}},
	}
	given := func(move int64) []shipper.Approval {
		return []shipper.Approval{{
			ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "now"}}},
			Spec: shipper.ApprovalSpec{
				Release: "web-1-0", Step: new(int32), Move: move, By: shipper.ApprovalUser{Username: "ann"},
			},
		}}
	}
	counts := func(what string, all []shipper.Approval, want int) {
		t.Helper()
		if got, _ := strategy.ApprovalsOf(rel, step, all); len(got.Users) != want {
			t.Errorf("%s: %d count, want %d", what, len(got.Users), want)
		}
	}
	counts("in the first wave", given(0), 1)
	rel.Spec.TargetWave = new(int32(1))
	counts("in the next wave, which no webhook has noted", given(0), 0)
	rel.Annotations[shipper.ReleaseMovedAnnotation] = `{"from":1,"to":0,"toWave":1,"count":2}`
	counts("in the next wave", given(0), 0)
	counts("given there", given(2), 1)
	rel.Spec.TargetWave = nil
	counts("back in the first wave, which no webhook has noted", given(2), 0)
}
