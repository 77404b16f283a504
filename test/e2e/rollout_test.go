// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func Test01NewApplicationAllIn(t *testing.T) {
	onOneAndTwoClusters(t, func(s *story) {
		s.applies(s.application("0.0.1", 4, allIn))
		rel := s.release(0)
		s.completes(rel)
		s.readyPods(rel, 4)
		s.endpoints(4)
	})
}

func Test09RolloutAllIn(t *testing.T) {
	onOneAndTwoClusters(t, func(s *story) {
		s.applies(s.application("0.0.1", 4, allIn))
		incumbent := s.release(0)
		s.completes(incumbent)

		s.edits(func(app *shipper.Application) { app.Spec.Template.Chart.Version = "0.0.2" })
		contender := s.release(1)
		s.completes(contender)
		s.readyPods(contender, 4)
		s.readyPods(incumbent, 0)
		s.endpoints(4)
	})
}

func Test12NewApplicationVanguard(t *testing.T) {
	onOneAndTwoClusters(t, func(s *story) {
		s.applies(s.application("0.0.1", 3, vanguard))
		rel := s.release(0)
		s.waitsForCommand(rel, 0)
		s.readyPods(rel, 1)
		s.steps(rel, 1)
		s.waitsForCommand(rel, 1)
		s.readyPods(rel, 2)
		s.steps(rel, 2)
		s.completes(rel)
		s.readyPods(rel, 3)
	})
}

func Test16RolloutVanguard(t *testing.T) {
	onOneAndTwoClusters(t, func(s *story) {
		incumbent, contender := s.vanguardOverAllIn()
		s.steps(contender, 1)
		s.waitsForCommand(contender, 1)
		s.readyPods(contender, 2)
		s.readyPods(incumbent, 2)
		s.endpoints(4)
		s.steps(contender, 2)
		s.completes(contender)
		s.readyPods(contender, 4)
		s.readyPods(incumbent, 0)
		s.endpoints(4)
	})
}

func Test20RolloutMovingStrategyBackwards(t *testing.T) {
	onOneAndTwoClusters(t, func(s *story) {
		incumbent, contender := s.vanguardOverAllIn()
		s.steps(contender, 1)
		s.waitsForCommand(contender, 1)
		s.readyPods(contender, 2)
		s.readyPods(incumbent, 2)
		s.steps(contender, 0)
		s.waitsForCommand(contender, 0)
		s.readyPods(contender, 1)
		s.readyPods(incumbent, 4)
		s.endpoints(4)
	})
}

// vanguardOverAllIn rolls version 0.0.1 out at once with four replicas, then 0.0.2 to step staging.
func (s *story) vanguardOverAllIn() (incumbent, contender string) {
	s.Helper()
	s.applies(s.application("0.0.1", 4, allIn))
	incumbent = s.release(0)
	s.completes(incumbent)

	next := s.application("0.0.2", 4, vanguard)
	s.edits(func(app *shipper.Application) { app.Spec.Template = next.Spec.Template })
	contender = s.release(1)
	s.waitsForCommand(contender, 0)
	s.readyPods(contender, 1)
	s.readyPods(incumbent, 4)
	s.endpoints(4)
	return incumbent, contender
}
