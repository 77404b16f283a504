// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// inTraffic is how many Pods have traffic in a cluster.
func (a *app) inTraffic(cluster string) (sum int32) {
	for _, r := range a.all() {
		if run := a.runs[r.Release.Name][cluster]; run != nil {
			sum += min(run.traffic, run.pods)
		}
	}
	return sum
}

// TestRandomDeletionsNeverEmptyACluster deletes Releases at random, in any order, while Pods start slowly and clusters come and go. A
// cluster with Pods in traffic always has some.
func TestRandomDeletionsNeverEmptyACluster(t *testing.T) {
	for seed := range *seeds / 20 {
		dice := rand.New(rand.NewPCG(seed, 5))
		a, log := newApp(), []string(nil)
		a.keeps = true
		a.release(allIn, 4, "a", "b")
		for range 20 {
			a.reconcile()
			a.work()
		}
		a.pace = int32(dice.IntN(3))
		for range 60 {
			switch dice.IntN(8) {
			case 0:
				a.release(vanguard, 1+int32(dice.IntN(4)), "a", "b")
				log = append(log, "made "+a.newest().Name)
			case 1:
				if len(a.releases) > 1 {
					name := a.releases[dice.IntN(len(a.releases))].Release.Name
					a.leave(name)
					log = append(log, "deleted "+name)
					a.moveBack()
				}
			case 2:
				step := int32(dice.IntN(len(a.newest().Spec.Environment.Strategy.Steps)))
				step = max(step, a.newest().Spec.TargetStep) // a retreat without an incumbent takes the traffic away, as it says
				a.newest().Spec.TargetStep = step
				log = append(log, fmt.Sprint("step ", step))
			case 3:
				a.down["b"] = !a.down["b"]
				log = append(log, fmt.Sprint("b is down: ", a.down["b"]))
			}
			a.reconcile()
			for _, cluster := range []string{"a", "b"} {
				if n := a.inTraffic(cluster); n < 1 {
					t.Fatalf("seed %d: cluster %s has no Pod in traffic after\n%s", seed, cluster, strings.Join(log, "\n"))
				}
			}
			a.work()
		}
		a.down, a.pace = map[string]bool{}, 0
		a.newest().Spec.TargetStep = int32(len(a.newest().Spec.Environment.Strategy.Steps) - 1)
		for range 40 {
			a.reconcile()
			a.work()
		}
		if len(a.leaving) > 0 {
			c := shipper.FindCondition(a.leaving[0].Release.Status.Conditions, shipper.ReleaseStrategyExecuted)
			t.Fatalf("seed %d: %s does not go: %s\n%s", seed, a.leaving[0].Release.Name, c.Message, strings.Join(log, "\n"))
		}
	}
}

// moveBack does what the application reconciler does on an abort: a complete Release goes to its last step.
func (a *app) moveBack() {
	if rel := a.newest(); shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete) {
		rel.Spec.TargetStep = int32(len(rel.Spec.Environment.Strategy.Steps) - 1)
	}
}

func TestADeletedReleaseSaysWhatKeepsIt(t *testing.T) {
	a := settled(t, 1, allIn, vanguard)
	a.down["b"] = true
	a.work()
	deleted := a.newest().Name
	a.leave(deleted)
	for range 10 {
		a.reconcile()
		a.work()
	}
	c := shipper.FindCondition(a.leaving[0].Release.Status.Conditions, shipper.ReleaseStrategyExecuted)
	want := shipper.Condition{
		Type: shipper.ReleaseStrategyExecuted, Status: corev1.ConditionFalse, Reason: shipper.StrategyInProgress,
		LastTransitionTime: c.LastTransitionTime,
		Message:            `being deleted; kept in clusters [b] until Release "web-0" is at its step there and has traffic`,
	}
	if diff := cmp.Diff(want, *c); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if run := a.runs[deleted]["a"]; run.pods != 0 || run.traffic != 0 {
		t.Errorf("in the cluster where it was replaced it has %d Pods, %d in traffic", run.pods, run.traffic)
	}
}

// TestTheOnlyReleaseStaysIfItWasEverComplete deletes the only Release of an Application. One that never completed goes at once.
func TestTheOnlyReleaseStaysIfItWasEverComplete(t *testing.T) {
	for sentence, tc := range map[string]struct {
		steps []int32 // that were requested one after the other
		stays bool
		why   string
	}{
		"it never completed":                            {[]int32{0, 1}, false, "False StrategyNotComplete"},
		"it is complete":                                {[]int32{2}, true, "True "},
		"it was complete, and was moved back":           {[]int32{2, 1}, true, "False NoLongerComplete"},
		"it was moved back, and on, and back once more": {[]int32{2, 0, 1, 0, 1}, true, "False NoLongerComplete"},
	} {
		t.Run(sentence, func(t *testing.T) {
			a := newApp()
			a.keeps = true
			a.release(vanguard, 4, "a", "b")
			for _, step := range tc.steps {
				a.newest().Spec.TargetStep = step
				for range 10 {
					a.reconcile()
					a.work()
				}
			}
			c := shipper.FindCondition(a.newest().Status.Conditions, shipper.ReleaseComplete)
			if is := fmt.Sprintf("%s %s", c.Status, c.Reason); is != tc.why {
				t.Errorf("Complete is %q, want %q", is, tc.why)
			}
			before := a.inTraffic("a")
			a.leave(a.newest().Name)
			for range 10 {
				a.reconcile()
				a.work()
			}
			if stays := len(a.leaving) == 1; stays != tc.stays || stays && a.inTraffic("a") != before {
				t.Errorf("it stays: %t, want %t; %d of %d Pods are in traffic", stays, tc.stays, a.inTraffic("a"), before)
			}
		})
	}
}

// TestTheHeirOfADeletedReleaseStays deletes a complete Release, and then the one that took its traffic and never completed.
func TestTheHeirOfADeletedReleaseStays(t *testing.T) {
	a := settled(t, 1, allIn, vanguard)
	complete, heir := a.releases[0].Release.Name, a.newest()
	heir.Spec.TargetStep = 1
	for _, name := range []string{complete, heir.Name} {
		for range 20 {
			a.reconcile()
			a.work()
		}
		a.leave(name)
	}
	before := a.inTraffic("a")
	for range 20 {
		a.reconcile()
		a.work()
	}
	if len(a.leaving) != 1 || before == 0 || a.inTraffic("a") != before {
		t.Errorf("%d Releases stay; %d of %d Pods are in traffic", len(a.leaving), a.inTraffic("a"), before)
	}
}

// TestWhatKeepsADeletedReleaseNamesTheOneThatServes: the Release that an abort brings back may have failed, and have no traffic.
func TestWhatKeepsADeletedReleaseNamesTheOneThatServes(t *testing.T) {
	a := settled(t, 0, allIn, vanguard)
	a.release(vanguard, 10, "a", "b")
	a.newest().Spec.TargetStep = 1
	a.down["b"] = true
	a.work()
	deleted := a.newest().Name
	a.leave(deleted)
	a.reconcile()
	got := shipper.FindCondition(a.leaving[0].Release.Status.Conditions, shipper.ReleaseStrategyExecuted).Message
	want := `being deleted; kept in clusters [b] until Release "web-1" is at its step there and Release "web-0" has traffic`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
