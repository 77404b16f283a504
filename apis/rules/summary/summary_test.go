// SPDX-License-Identifier: Apache-2.0

package summary_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/summary"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

var born = time.Unix(1e9, 0)

// release has one value and completed after took; never, when that is 0.
func release(name string, tag string, took time.Duration, of string) *shipper.Release {
	rel := &shipper.Release{}
	rel.Name, rel.CreationTimestamp = name, metav1.NewTime(born)
	rel.Spec.Environment.Values = &shipper.ChartValues{"image": map[string]any{"tag": tag}}
	if of != "" {
		rel.Annotations = map[string]string{shipper.ReleaseRollbackOfAnnotation: of}
	}
	if took != 0 {
		rel.Status.Conditions = []shipper.Condition{{
			Type: shipper.ReleaseComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(born.Add(took)),
		}}
	}
	return rel
}

// step has one condition that is False.
func step(awaited, message string) *shipper.ReleaseStrategyStatus {
	return &shipper.ReleaseStrategyStatus{Conditions: []shipper.ReleaseStrategyCondition{
		{Condition: shipper.Condition{Type: "ContenderAchievedInstallation", Status: corev1.ConditionTrue}},
		{Condition: shipper.Condition{Type: awaited, Status: corev1.ConditionFalse, Message: message}},
	}}
}

func TestReleasesAreSummedUp(t *testing.T) {
	lost := release("web-0", "a", time.Hour, "")
	lost.Status.Conditions[0].Message = "its status was lost; it is taken for complete because targetStep is the last step"
	retreated := release("web-0", "a", time.Hour, "")
	retreated.Status.Conditions[0].Status = corev1.ConditionFalse
	overrides, overrode := release("web-0", "a", 0, ""), release("web-0", "a", 0, "")
	overrides.Annotations = map[string]string{
		shipper.RolloutBlockOverrideAnnotation: "shop/freeze", shipper.RolloutBlockOverrideReasonAnnotation: strings.Repeat("é", 257),
	}
	overrode.Status.Summary = &shipper.ReleaseSummary{Override: "shop/freeze", OverrideReason: "fire"}
	restored := release("web-0", "a", -time.Hour, "")
	restored.Status.Summary = &shipper.ReleaseSummary{Outcome: "Complete", Duration: "2s"}
	retreated.Status.Summary = restored.Status.Summary
	unscheduled := release("web-0", "a", 0, "")
	unscheduled.Status.Conditions = []shipper.Condition{{
		Type: shipper.ReleaseScheduled, Status: corev1.ConditionFalse, Message: strings.Repeat("é", 1025),
	}}
	unscheduled.Status.Strategy = step("ContenderAchievedCapacity", "an outdated message")
	waits := release("web-0", "a", 0, "")
	waits.Status.Strategy = step("ContenderAchievedCapacity", "1 of 3 Pods")
	unfilled, unplaced := release("web-0", "a", 0, ""), release("web-0", "a", 0, "")
	unfilled.Annotations = map[string]string{shipper.ReleaseClustersAnnotation: "eu"}
	unfilled.Status.Conditions = []shipper.Condition{{
		Type: shipper.ReleaseScheduled, Status: corev1.ConditionFalse, Reason: shipper.PlacementUnfulfilled, Message: "1 of 2 clusters",
	}}
	unfilled.Status.Strategy = step("ContenderAchievedCapacity", "1 of 3 Pods")
	unplaced.Status.Conditions = unfilled.Status.Conditions
	commanded := release("web-0", "a", 0, "")
	commanded.Spec.Environment.Strategy = &shipper.RolloutStrategy{
		Steps: []shipper.RolloutStrategyStep{{Name: "staging"}, {Name: "full on"}},
	}
	commanded.Status.Strategy = &shipper.ReleaseStrategyStatus{
		State: shipper.ReleaseStrategyState{WaitingForCommand: shipper.StrategyStateTrue},
	}
	advancing := func(waits shipper.StrategyState, reason, message string) *shipper.Release {
		rel := commanded.DeepCopy()
		rel.Status.Strategy.State.WaitingForCommand = waits
		rel.Status.Conditions = []shipper.Condition{{
			Type: shipper.ReleaseAdvancing, Status: corev1.ConditionFalse, Reason: reason, Message: message,
		}}
		return rel
	}
	failed := advancing(shipper.StrategyStateTrue, shipper.AdvancingHeldAfterGoingBack, "it failed")
	held := advancing(shipper.StrategyStateTrue, shipper.AdvancingHeldByUser, "held: lunch")
	blocked := advancing(shipper.StrategyStateFalse, shipper.AdvancingHeldByBlock, "shop/freeze")
	ended := advancing(shipper.StrategyStateFalse, shipper.AdvancingComplete, "")
	shared := release("web-0", "a", 0, "")
	shared.Status.Summary = &shipper.ReleaseSummary{Traffic: "50 %"}
	type sums = []shipper.ReleaseSummary
	for sentence, tc := range map[string]struct {
		rels []*shipper.Release
		want sums
	}{
		"one that is on its way": {[]*shipper.Release{release("web-0", "a", 0, "")}, sums{{Outcome: "InProgress"}}},
		"one that completed, and one that replaces it": {
			[]*shipper.Release{release("web-0", "a", 250*time.Second, ""), release("web-1", "b", 0, "")},
			sums{{Outcome: "Complete", Duration: "4m10s"}, {Outcome: "InProgress", ValuesChanged: "image.tag"}},
		},
		"one that was rolled back": {
			[]*shipper.Release{
				release("web-0", "a", time.Second, ""), release("web-1", "b", time.Second, ""), release("web-2", "a", time.Second, "web-0"),
			},
			sums{
				{Outcome: "Complete", Duration: "1s"}, {Outcome: "RolledBack", Duration: "1s", ValuesChanged: "image.tag"},
				{Outcome: "Complete", Duration: "1s", ValuesChanged: "image.tag"},
			},
		},
		"one that never completed before it was rolled back": {
			[]*shipper.Release{release("web-0", "a", time.Second, ""), release("web-1", "b", 0, ""), release("web-2", "a", 0, "web-0")},
			sums{
				{Outcome: "Complete", Duration: "1s"}, {Outcome: "Superseded", ValuesChanged: "image.tag"},
				{Outcome: "InProgress", ValuesChanged: "image.tag"},
			},
		},
		"one that is rolled back to, after the next one was deleted": {
			[]*shipper.Release{release("web-0", "a", time.Second, ""), release("web-2", "a", 0, "web-0")},
			sums{{Outcome: "Complete", Duration: "1s"}, {Outcome: "InProgress"}},
		},
		"one that was restored, and nothing had been said of it": {
			[]*shipper.Release{release("web-0", "a", -time.Hour, "")}, sums{{Outcome: "Complete"}},
		},
		"one that was restored": {[]*shipper.Release{restored}, sums{{Outcome: "Complete", Duration: "2s"}}},
		"one that overrides a block": {
			[]*shipper.Release{overrides}, sums{{Outcome: "InProgress", Override: "shop/freeze", OverrideReason: strings.Repeat("é", 255) + "…"}},
		},
		"one that overrode a block which is gone": {
			[]*shipper.Release{overrode}, sums{{Outcome: "InProgress", Override: "shop/freeze", OverrideReason: "fire"}},
		},
		"one that is not scheduled waits for that": {
			[]*shipper.Release{unscheduled},
			sums{{Outcome: "InProgress", Waiting: "Scheduled", Message: strings.Repeat("é", 1023) + "…"}},
		},
		"one that is scheduled waits for the first condition of its step": {
			[]*shipper.Release{waits}, sums{{Outcome: "InProgress", Waiting: "ContenderAchievedCapacity", Message: "1 of 3 Pods"}},
		},
		"one with fewer clusters than wanted goes on in those": {
			[]*shipper.Release{unfilled}, sums{{Outcome: "InProgress", Waiting: "ContenderAchievedCapacity", Message: "1 of 3 Pods"}},
		},
		"one that has achieved its step waits for a command": {
			[]*shipper.Release{commanded},
			sums{{Outcome: "InProgress", Waiting: "AwaitingCommand", Message: "waits until targetStep is raised to 1 (full on)"}},
		},
		"one that failed and went back says so": {
			[]*shipper.Release{failed}, sums{{Outcome: "InProgress", Waiting: "HeldAfterGoingBack", Message: "it failed"}},
		},
		"one that a user holds waits for that user": {
			[]*shipper.Release{held}, sums{{Outcome: "InProgress", Waiting: "HeldByUser", Message: "held: lunch"}},
		},
		"one that would go on by itself waits for the end of a block": {
			[]*shipper.Release{blocked}, sums{{Outcome: "InProgress", Waiting: "HeldByBlock", Message: "shop/freeze"}},
		},
		"one that is complete waits for nothing": {[]*shipper.Release{ended}, sums{{Outcome: "InProgress"}}},
		"the share of the traffic stays":         {[]*shipper.Release{shared}, sums{{Outcome: "InProgress", Traffic: "50 %"}}},
		"one without any cluster waits for one": {
			[]*shipper.Release{unplaced}, sums{{Outcome: "InProgress", Waiting: "Scheduled", Message: "1 of 2 clusters"}},
		},
		"one whose status was lost":      {[]*shipper.Release{lost}, sums{{Outcome: "Complete"}}},
		"one that was taken a step back": {[]*shipper.Release{retreated}, sums{{Outcome: "InProgress"}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got sums
			for i := range tc.rels {
				got = append(got, summary.Of(tc.rels, i))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestKeysAreBounded(t *testing.T) {
	keys := []string{"alpha", "beta", "gamma", "delta"}
	for most, want := range map[int]string{
		100: "alpha, beta, gamma, delta", 25: "alpha, beta, gamma, delta", 24: "alpha, beta, … 2 more", 16: "alpha, … 3 more", 9: "4 values",
	} {
		if got := summary.Shorten(keys, most); got != want {
			t.Errorf("in %d: %q, want %q", most, got, want)
		}
	}
	if got := summary.Shorten(nil, 9); got != "" {
		t.Errorf("of none it says %q", got)
	}
}
