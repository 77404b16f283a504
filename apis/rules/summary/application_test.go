// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestAnApplicationIsSummedUpByItsNewestRelease(t *testing.T) {
	three := &shipper.RolloutStrategy{Steps: make([]shipper.RolloutStrategyStep, 3)}
	of := func(strategy *shipper.RolloutStrategy, achieved *shipper.AchievedStep, conditions ...shipper.Condition) *shipper.Release {
		rel := &shipper.Release{}
		rel.Spec.Environment.Strategy, rel.Status.AchievedStep, rel.Status.Conditions = strategy, achieved, conditions
		return rel
	}
	healthy := func(status corev1.ConditionStatus, reason string) shipper.Condition {
		return shipper.Condition{Type: shipper.ReleaseHealthy, Status: status, Reason: reason}
	}
	staging := &shipper.AchievedStep{Name: "staging"}
	for sentence, tc := range map[string]struct {
		rels []*shipper.Release
		want *shipper.ApplicationSummary
	}{
		"no Release":             {nil, nil},
		"one that has not begun": {[]*shipper.Release{of(three, nil)}, &shipper.ApplicationSummary{}},
		"the newest counts": {
			[]*shipper.Release{of(three, &shipper.AchievedStep{Step: 2, Name: "full on"}, healthy("True", "")), of(three, staging)},
			&shipper.ApplicationSummary{Step: "0/2 staging"},
		},
		"one that is complete and well": {
			[]*shipper.Release{of(three, &shipper.AchievedStep{Step: 2, Name: "full on"}, healthy("True", ""))},
			&shipper.ApplicationSummary{Step: "2/2 full on", Health: shipper.ApplicationHealthy},
		},
		"a step without a name": {[]*shipper.Release{of(three, &shipper.AchievedStep{Step: 1})}, &shipper.ApplicationSummary{Step: "1/2"}},
		"no strategy":           {[]*shipper.Release{of(nil, staging)}, &shipper.ApplicationSummary{Step: "staging"}},
		"objects that change": {
			[]*shipper.Release{of(nil, nil, healthy("False", shipper.ObjectsInProgress))},
			&shipper.ApplicationSummary{Health: shipper.ApplicationProgressing},
		},
		"objects that are not well": {
			[]*shipper.Release{of(nil, nil, healthy("False", shipper.ObjectsNotHealthy))},
			&shipper.ApplicationSummary{Health: shipper.ApplicationDegraded},
		},
		"objects that nothing is known of": {
			[]*shipper.Release{of(nil, nil, healthy("Unknown", shipper.ObjectsNotKnown))},
			&shipper.ApplicationSummary{Health: shipper.ApplicationHealthUnknown},
		},
	} {
		if diff := cmp.Diff(tc.want, OfApplication(tc.rels)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}
