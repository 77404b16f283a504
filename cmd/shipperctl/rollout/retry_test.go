// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestChecksAreMadeAgainOnlyWhereSomeAreMade(t *testing.T) {
	at := func(step int32, movedBack bool) any {
		rel := exampleObserved().releases[1]
		rel.Spec.Environment.Strategy.Steps[1].Checks = []shipper.StepCheck{{Check: "errors"}}
		rel.Spec.TargetStep, rel.Status.Progress = step, &shipper.ReleaseProgress{Step: step, MovedBack: movedBack}
		return outcome("", checkable(rel))
	}
	for sentence, tc := range map[string]struct{ got, want any }{
		"at a step with checks":    {at(1, false), ""},
		"at a step without checks": {at(0, false), "step 0 (staging) of release web-1 has no checks"},
		"after going back": {at(1, true), "release web-1 went back to step 1 (half), where nothing is checked: " +
			"`shipperctl rollout advance` tries the next step again"},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}
