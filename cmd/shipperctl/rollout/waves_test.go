// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/position"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// wavedAt is a Release of three steps and two waves, at a position that it has achieved or has not.
func wavedAt(wave, step int32, achieved bool) *shipper.Release {
	rel := exampleObserved().releases[1]
	rel.Spec.Environment.Strategy.Waves = []shipper.Wave{{Name: "canary"}, {Name: "production"}}
	rel.Spec.TargetWave, rel.Spec.TargetStep, rel.Status.AchievedStep = &wave, step, nil
	if achieved {
		rel.Status.AchievedStep = &shipper.AchievedStep{Wave: wave, Step: step}
	}
	return rel
}

// placedAt is wavedAt for resources, which have no steps.
func placedAt(wave int32) *shipper.Release {
	rel := wavedAt(wave, 0, true)
	rel.Spec.Environment.Strategy.Steps, rel.Spec.Environment.Resources = nil, &shipper.Resources{}
	return rel
}

func TestMovesOverWaves(t *testing.T) {
	to := func(wave, step int32) position.Position { return position.Position{Wave: wave, Step: step} }
	forward := func(rel *shipper.Release, step int, skip bool) any { return outcome(advanceTo(rel, step, skip, skip)) }
	back := func(rel *shipper.Release, step int) any { return outcome(retreatTo(rel, step)) }
	begins := wavedAt(1, 0, false)
	begins.Spec.Environment.Strategy.Waves[1].BeforeTasks = &shipper.WaveTasks{Approvals: 1}
	for sentence, tc := range map[string]struct{ got, want any }{
		"beyond the first step of a wave that waits to begin": {forward(begins, -1, false), "step 0 (" + stepName(begins, 0) + ") of release " +
			"web-1 is a gate and is not achieved: `shipperctl rollout status` says what it waits for, and a user with the verb skip passes it " +
			"by --skip"},
		"beyond it all the same":     {forward(begins, -1, true), to(1, 1)},
		"to the next step of a wave": {forward(wavedAt(1, 0, true), -1, false), to(1, 1)},
		"to the next wave":           {forward(wavedAt(0, 2, true), -1, false), to(1, 0)},
		"to the next wave before one is done": {forward(wavedAt(0, 2, false), -1, false), "wave canary of release web-1 is not done: " +
			"`shipperctl rollout status` says what it waits for, and a user with the verb skip passes it by --skip"},
		"to the next wave all the same": {forward(wavedAt(0, 2, false), -1, true), to(1, 0)},
		"beyond the last wave": {forward(wavedAt(1, 2, true), -1, false), "release web-1 is at its last step, 2 " +
			"(full on), already"},
		"to the next wave of resources": {forward(placedAt(0), -1, false), to(1, 0)},
		"beyond the last wave of resources": {
			forward(placedAt(1), -1, false), "release web-1 is in its last wave, production, already",
		},
		"back a wave of resources": {back(placedAt(1), -1), to(0, 0)},
		"back a step":              {back(wavedAt(1, 2, true), -1), to(1, 1)},
		"back a wave":              {back(wavedAt(1, 0, true), -1), to(0, 2)},
		"back from the first step of the first": {back(wavedAt(0, 0, true), -1), "release web-1 is at its first step: " +
			"to give it up there is `shipperctl rollout abort`"},
		"a step of this wave, by its index": {back(wavedAt(1, 2, true), 0), to(1, 0)},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}

func TestAMoveAmidWavesIsMadeOnlyOfWhatWasSeen(t *testing.T) {
	rel := wavedAt(0, 2, true)
	rel.ResourceVersion = "7"
	patch, err := moveIf(rel, position.Position{Wave: 1})
	if err != nil {
		t.Fatal(err)
	}
	data, err := patch.Data(rel)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"metadata":{"resourceVersion":"7"},"spec":{"targetStep":0,"targetWave":1}}`; string(data) != want {
		t.Errorf("it is %s, want %s", data, want)
	}
	if patch, err = moveIf(rel, position.Position{Step: 1}); err != nil {
		t.Fatal(err)
	}
	if data, err = patch.Data(rel); err != nil {
		t.Fatal(err)
	}
	if want := `{"metadata":{"resourceVersion":"7"},"spec":{"targetStep":1}}`; string(data) != want {
		t.Errorf("to a step of the same wave it is %s, want %s", data, want)
	}
}

func TestWavesAreShownWithTheirFigures(t *testing.T) {
	p := canary()
	p.Waves = []waveState{
		{Name: "canary", Clusters: 1, Achieved: 1},
		{Name: "production", Clusters: 9, Achieved: 3, Moving: 12, MovingClusters: []string{"us-1", "ap-1"}, Target: true},
		{Name: "rest", Clusters: 4, Failed: 11, FailedClusters: []string{"eu-3"}},
	}
	want := []string{"waves      ✓ canary 1/1    ● production 3/9, 12 moving (us-1, ap-1 and 10 more)    " +
		"· rest 0/4, 11 failed (eu-3 and 10 more)"}
	var got []string
	for line := range strings.Lines(p.Screen(200, now)) {
		if strings.HasPrefix(line, "waves") {
			got = append(got, strings.TrimSuffix(line, "\n"))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if lines := p.Lines(now); !strings.Contains(lines, "wave: production 3/9, 12 moving (us-1, ap-1 and 10 more), asked for\n") {
		t.Error(lines)
	}
}

func TestStepsAreThoseOfTheWave(t *testing.T) {
	of := func(rel *shipper.Release) string {
		var out []string
		for _, s := range stepsOf(rel) {
			out = append(out, map[bool]string{true: "achieved", false: "open"}[s.Achieved])
		}
		return strings.Join(out, " ")
	}
	before := wavedAt(1, 1, false)
	before.Status.AchievedStep = &shipper.AchievedStep{Step: 2}
	got := []string{of(before), of(wavedAt(1, 1, true)), of(wavedAt(0, 0, false))}
	if diff := cmp.Diff([]string{"open open open", "achieved achieved open", "open open open"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
