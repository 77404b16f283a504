// SPDX-License-Identifier: Apache-2.0

package position_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/position"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// strategies with three steps, and as many waves.
func strategy(waves int) *shipper.RolloutStrategy {
	s := &shipper.RolloutStrategy{Steps: make([]shipper.RolloutStrategyStep, 3)}
	for range waves {
		s.Waves = append(s.Waves, shipper.Wave{Name: string(rune('a' + len(s.Waves)))})
	}
	return s
}

func TestPositionsFollowOneAnother(t *testing.T) {
	for waves, want := range map[int][]position.Position{
		0: {{}, {Step: 1}, {Step: 2}},
		2: {{}, {Step: 1}, {Step: 2}, {Wave: 1}, {Wave: 1, Step: 1}, {Wave: 1, Step: 2}},
	} {
		s := strategy(waves)
		got := []position.Position{{}}
		for at, more := got[0].Next(s); more; at, more = at.Next(s) {
			if before, ok := at.Previous(s); !ok || before != got[len(got)-1] || !before.Before(at) || at.Before(before) {
				t.Errorf("%v is after %v, and comes from %v", at, got[len(got)-1], before)
			}
			got = append(got, at)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d waves (-want +got):\n%s", waves, diff)
		}
		if last := position.Last(s); last != got[len(got)-1] {
			t.Errorf("%d waves: the last is %v", waves, last)
		}
	}
}

// placed has two waves of resources.
func placed() *shipper.RolloutStrategy {
	s := strategy(2)
	s.Steps = nil
	return s
}

func TestWavesOfResourcesHaveOnePositionEach(t *testing.T) {
	s := placed()
	next, more := position.Position{}.Next(s)
	if last := position.Last(s); !more || next != (position.Position{Wave: 1}) || next != last || !next.Exists(s) {
		t.Errorf("after the first is %v, %t; the last is %v", next, more, last)
	}
	if before, ok := next.Previous(s); !ok || before != (position.Position{}) || !before.Exists(s) {
		t.Errorf("before the last is %v, %t", before, ok)
	}
	for _, at := range []position.Position{{Step: 1}, {Wave: 2}, {Wave: -1}} {
		if at.Exists(s) {
			t.Errorf("%v exists", at)
		}
	}
}

func TestALowerStepOfALaterWaveIsAfter(t *testing.T) {
	if at := (position.Position{Wave: 1}); at.Before(position.Position{Step: 2}) || at.Compare(at) != 0 {
		t.Error("it is not")
	}
}

func TestTargetWaveHasNoMeaningWithoutWaves(t *testing.T) {
	rel := &shipper.Release{}
	rel.Spec.Environment.Strategy = strategy(0)
	rel.Spec.TargetWave, rel.Spec.TargetStep = new(int32(7)), 1
	if at := position.Of(rel); at != (position.Position{Step: 1}) {
		t.Errorf("it is at %v", at)
	}
	position.Position{Wave: 1, Step: 2}.Set(rel)
	if *rel.Spec.TargetWave != 7 || rel.Spec.TargetStep != 2 {
		t.Errorf("it is set to %+v", rel.Spec)
	}
}

func TestPositionsAreWordedWithTheirWave(t *testing.T) {
	got := []string{
		position.Position{Step: 1}.In(strategy(0)), position.Position{Wave: 1, Step: 1}.In(strategy(2)),
		position.Position{Wave: 9}.In(strategy(2)),
		position.Position{Wave: 1}.In(placed()), position.Position{Step: 2}.String(), position.Position{Wave: 1, Step: 2}.String(),
	}
	want := []string{"step 1", "step 1 of wave b", "step 0 of wave 9", "wave b", "2", "1/2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
