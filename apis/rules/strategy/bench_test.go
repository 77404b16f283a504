// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// BenchmarkMake plans the first step of an upgrade while the Release before serves and one before that is still there. The time per
// cluster must not grow with the number of clusters.
func BenchmarkMake(b *testing.B) {
	for name, gate := range map[string]*shipper.StepGate{"canary": nil, "blue-green": {}} {
		for _, count := range []int{100, 1000} {
			b.Run(fmt.Sprintf("%s/%d-clusters", name, count), func(b *testing.B) {
				var clusters []string
				for i := range count {
					clusters = append(clusters, fmt.Sprintf("cluster-%04d", i))
				}
				a := newApp()
				if gate != nil {
					a.preview = map[string]bool{}
					for _, c := range clusters {
						a.preview[c] = true
					}
				}
				steps := []shipper.RolloutStrategyStep{step("staging", 100, 50, 100, 0), step("full on", 0, 100, 0, 100)}
				steps[0].Gate = gate
				for range 3 {
					a.release(steps, 4, clusters...)
					for range 6 {
						a.reconcile()
						a.work()
					}
					a.newest().Spec.TargetStep = 1
					for range 6 {
						a.reconcile()
						a.work()
					}
				}
				a.release(steps, 4, clusters...)
				a.reconcile()
				a.work()
				for b.Loop() {
					a.replan()
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*count), "µs/cluster")
			})
		}
	}
}

// BenchmarkWaves plans a rollout in 1,000 clusters, half of which are in the wave.
func BenchmarkWaves(b *testing.B) {
	a, assigned := newApp(), waves.Assigned{}
	var clusters []string
	for i := range 1000 {
		clusters = append(clusters, fmt.Sprintf("cluster-%04d", i))
		assigned[clusters[i]] = int32(i / 500)
	}
	a.release(allIn, 4, clusters...)
	for range 8 {
		a.reconcile()
		a.work()
	}
	r := a.release(vanguard, 4, clusters...)
	r.Release.Spec.Environment.Strategy.Waves = []shipper.Wave{
		{Name: "a", MaxConcurrency: new(intstr.FromString("10%"))}, {Name: "b"},
	}
	r.Release.Annotations[shipper.ReleaseWavesAnnotation] = assigned.String()
	r.Installation.Spec.Clusters = []string{}
	for range 6 {
		a.reconcile()
		a.work()
	}
	observed, now := a.observed(), metav1.NewTime(a.now)
	for b.Loop() {
		strategy.Make(observed, now)
	}
}
