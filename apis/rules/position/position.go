// SPDX-License-Identifier: Apache-2.0

// Package position says how far a rollout is: a wave of its strategy, and a step of it. Without waves a position is a step of wave 0.
package position

import (
	"cmp"
	"fmt"
	"strconv"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Position is how far a rollout is: a wave, and a step of it. Both count from 0.
type Position struct{ Wave, Step int32 }

// Of is the position that a Release is to have. Where the strategy has no waves, targetWave has no meaning.
func Of(rel *shipper.Release) Position {
	p := Position{Step: rel.Spec.TargetStep}
	if HasWaves(rel) {
		p.Wave = Wave(rel)
	}
	return p
}

// Wave is the targetWave of a Release; 0 if it has none.
func Wave(rel *shipper.Release) int32 {
	if rel.Spec.TargetWave == nil {
		return 0
	}
	return *rel.Spec.TargetWave
}

// Achieved is the position that a Release has achieved last; {-1, -1} before the first.
func Achieved(rel *shipper.Release) Position {
	a := rel.Status.AchievedStep
	if a == nil {
		return Position{-1, -1}
	}
	return Position{Wave: a.Wave, Step: a.Step}
}

// Last is the position at which a rollout with a strategy completes.
func Last(s *shipper.RolloutStrategy) Position { return Position{s.LastWave(), s.LastStep()} }

// HasWaves reports whether the strategy of a Release has waves.
func HasWaves(rel *shipper.Release) bool {
	s := rel.Spec.Environment.Strategy
	return s != nil && len(s.Waves) > 0
}

// Compare is -1 if p is before o, 0 if they are equal, and 1 if p is after o. A lower step of a later wave is after.
func (p Position) Compare(o Position) int {
	return cmp.Or(cmp.Compare(p.Wave, o.Wave), cmp.Compare(p.Step, o.Step))
}

// Before reports whether p is before o.
func (p Position) Before(o Position) bool { return p.Compare(o) < 0 }

// Next is the position after p; ok is false after the last.
func (p Position) Next(s *shipper.RolloutStrategy) (next Position, ok bool) {
	switch {
	case p.Step < s.LastStep():
		return Position{p.Wave, p.Step + 1}, true
	case p.Wave < s.LastWave():
		return Position{p.Wave + 1, 0}, true
	}
	return p, false
}

// Previous is the position before p; ok is false before the first.
func (p Position) Previous(s *shipper.RolloutStrategy) (previous Position, ok bool) {
	switch {
	case p.Step > 0:
		return Position{p.Wave, p.Step - 1}, true
	case p.Wave > 0:
		return Position{p.Wave - 1, s.LastStep()}, true
	}
	return p, false
}

// Exists reports whether a strategy has the position. Waves of resources have no steps: each of their positions has step 0.
func (p Position) Exists(s *shipper.RolloutStrategy) bool {
	if s == nil || p.Wave < 0 || p.Wave > s.LastWave() {
		return false
	}
	if len(s.Steps) == 0 && len(s.Waves) > 0 {
		return p.Step == 0
	}
	return p.Step >= 0 && int(p.Step) < len(s.Steps)
}

// String is the position as annotations have it: the step, or WAVE/STEP after wave 0.
func (p Position) String() string {
	if p.Wave == 0 {
		return strconv.Itoa(int(p.Step))
	}
	return fmt.Sprintf("%d/%d", p.Wave, p.Step)
}

// In describes a position of a strategy: step 1, or step 1 of wave production, or wave production where there are no steps.
func (p Position) In(s *shipper.RolloutStrategy) string {
	switch {
	case s == nil || len(s.Waves) == 0:
		return fmt.Sprintf("step %d", p.Step)
	case len(s.Steps) == 0:
		return "wave " + WaveName(s, p.Wave)
	}
	return fmt.Sprintf("step %d of wave %s", p.Step, WaveName(s, p.Wave))
}

// WaveName is the name of a wave of a strategy, or its index where there is no such wave.
func WaveName(s *shipper.RolloutStrategy, wave int32) string {
	if s != nil && wave >= 0 && int(wave) < len(s.Waves) {
		return s.Waves[wave].Name
	}
	return fmt.Sprint(wave)
}

// Set makes a Release to have the position.
func (p Position) Set(rel *shipper.Release) {
	rel.Spec.TargetStep = p.Step
	if HasWaves(rel) {
		rel.Spec.TargetWave = &p.Wave
	}
}
