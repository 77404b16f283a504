// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestSharesAreShownOnlyWhenAStepHasThem: between two steps, kubectl would show 33 % where the step says 50 %.
func TestSharesAreShownOnlyWhenAStepHasThem(t *testing.T) {
	for sentence, tc := range map[string]struct {
		edit func(contender, incumbent *shipper.TrafficTarget)
		want string
	}{
		"both have what the step wants": {func(_, _ *shipper.TrafficTarget) {}, " 50 % : 50 %"},
		"the incumbent is not asked yet": {
			func(_, incumbent *shipper.TrafficTarget) { incumbent.Spec.Clusters[0].Weight = 100 }, "moving",
		},
		"the target was not seen yet": {func(contender, _ *shipper.TrafficTarget) { contender.Generation++ }, "moving"},
		"Pods are moved": {func(contender, _ *shipper.TrafficTarget) {
			contender.Status.Clusters[0].Conditions = []shipper.Condition{
				{Type: shipper.TargetReady, Status: corev1.ConditionFalse, Reason: shipper.PodsNotInEndpoints},
			}
		}, "moving"},
		"Pods are not ready, for ever": {func(contender, _ *shipper.TrafficTarget) {
			contender.Status.Clusters[0].AchievedTraffic = 25
			contender.Status.Clusters[0].Conditions = []shipper.Condition{
				{Type: shipper.TargetReady, Status: corev1.ConditionFalse, Reason: shipper.PodsNotReady},
			}
		}, " 33 % : 67 %"},
		"the step before has not ended": {func(contender, incumbent *shipper.TrafficTarget) {
			contender.Spec.Clusters[0].Weight, contender.Status.Clusters[0].AchievedTraffic = 0, 0
			incumbent.Spec.Clusters[0].Weight, incumbent.Status.Clusters[0].AchievedTraffic = 100, 100
		}, "  0 % : 100 %"},
	} {
		o := exampleObserved()
		contender, incumbent := o.traffic["web-1"], o.traffic["web-0"]
		o.releases[1].Spec.Environment.Strategy.Steps[1].Traffic = shipper.RolloutStrategyStepValue{Contender: 50, Incumbent: 50}
		for _, tt := range []*shipper.TrafficTarget{contender, incumbent} {
			tt.Spec.Clusters = []shipper.ClusterTrafficTarget{{Name: "eu", Weight: 50}}
			tt.Status.Clusters[0].AchievedTraffic = 50
		}
		tc.edit(contender, incumbent)
		p := viewOf(o, now)
		if got := p.Clusters[0].share(); got != tc.want {
			t.Errorf("%s: share %q, want %q", sentence, got, tc.want)
		}
		if moving := tc.want == "moving"; moving != strings.Contains(p.Lines(now), "traffic moving") {
			t.Errorf("%s: the lines are\n%s", sentence, p.Lines(now))
		}
	}
}

func TestWhatAPlacementLacksIsShown(t *testing.T) {
	o := exampleObserved()
	o.app.Status.Conditions = []shipper.Condition{
		{Type: shipper.ApplicationReleaseSynced, Status: corev1.ConditionTrue},
		{
			Type: shipper.ApplicationResourcesSelected, Status: corev1.ConditionFalse, Reason: "SelectionNotAllowed",
			Message: "ann may not place it",
		},
	}
	conditions := func(reason, message string) []shipper.Condition {
		return []shipper.Condition{{Type: shipper.TargetReady, Status: corev1.ConditionFalse, Reason: reason, Message: message}}
	}
	it := &shipper.InstallationTarget{}
	it.Status.Clusters = []shipper.ClusterInstallationStatus{
		{Name: "eu", Conditions: conditions(shipper.NotGranted, "Namespace work: Shipper's account lacks rights to namespaces")},
		{Name: "us", Conditions: conditions(shipper.InProgress, "waits")},
	}
	o.installed = map[string]*shipper.InstallationTarget{"web-1": it}
	text := viewOf(o, now).Lines(now)
	for _, want := range []string{
		"problem: ResourcesSelected: ann may not place it\n",
		"cluster eu: NotGranted: Namespace work: Shipper's account lacks rights to namespaces\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "cluster us: InProgress") {
		t.Errorf("what is in progress is shown as a problem:\n%s", text)
	}
}
