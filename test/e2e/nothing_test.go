// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestAChartThatRendersToNothingEmptiesTheClusters disables a chart by its values, step by step and back, and enables it
// again.
func TestAChartThatRendersToNothingEmptiesTheClusters(t *testing.T) {
	furnished(t)
	onTwoClusters(t, func(s *fixture) {
		s.applies(s.furnish(4, vanguard, "plain"))
		first := s.Release(0)
		s.WaitsForCommand(first, 0)
		s.Steps(first, 2)
		s.Completes(first)
		s.endpoints(4)

		s.Edits(func(app *shipper.Application) { (*app.Spec.Template.Values)["enabled"] = false })
		second := s.releaseAfter(first)
		for _, at := range []struct{ step, pods, endpoints int }{{0, 4, 4}, {1, 2, 1}, {0, 4, 4}} {
			s.Steps(second, int32(at.step))
			s.WaitsForCommand(second, int32(at.step))
			s.readyPods(first, at.pods)
			s.endpoints(at.endpoints)
		}
		s.Steps(second, 2)
		s.Completes(second)
		s.readyPods(first, 0)
		s.has("1 Deployments, 1 Services, 1 claims, plain, settings") // a rollback to the first is still possible

		s.Edits(func(app *shipper.Application) { (*app.Spec.Template.Values)["round"] = int64(2) })
		third := s.releaseAfter(second)
		s.Steps(third, 2)
		s.Completes(third)
		s.has("0 Deployments, 0 Services, 1 claims, settings") // the first Release is trimmed
		s.Eventually("the health of nothing", "True  ", s.healthy(third))
		s.settles(third) // without a Service
		s.says("cluster "+west+": 0 of 0 objects healthy", "rollout", "status", s.App)

		s.Edits(func(app *shipper.Application) { (*app.Spec.Template.Values)["enabled"] = true })
		fourth := s.releaseAfter(third)
		s.WaitsForCommand(fourth, 0)
		s.readyPods(fourth, 1)
		s.Steps(fourth, 2)
		s.Completes(fourth)
		s.readyPods(fourth, 4)
		s.endpoints(4)
		s.has("1 Deployments, 1 Services, 1 claims, plain, settings")
	})
}

// TestAChartMayRenderToNothingInOneCluster disables the chart in one of two clusters and rolls it out in the other.
func TestAChartMayRenderToNothingInOneCluster(t *testing.T) {
	furnished(t)
	onTwoClusters(t, func(s *fixture) {
		app := s.furnish(2, vanguard, "plain")
		app.Spec.Template.ValuesPerCluster = []shipper.ValuesFor{{Name: east, Values: &shipper.ChartValues{"enabled": false}}}
		s.applies(app)
		rel := s.Release(0)
		s.WaitsForCommand(rel, 0)
		s.Steps(rel, 2)
		s.Completes(rel)
		s.runs(rel, "west: 2 of nginx:stable, east: no Deployment")
		if got, err := s.inventory(east); err != nil || got != "0 Deployments, 0 Services, 0 claims" {
			t.Errorf("%s has %s (%v)", east, got, err)
		}
	})
}
