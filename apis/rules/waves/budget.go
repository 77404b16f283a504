// SPDX-License-Identifier: Apache-2.0

package waves

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// MaxFailures bounds the clusters that may fail, whatever the strategy allows: status.failedClusters lists them.
const MaxFailures = 100

// maxNamed bounds the clusters that a message names.
const maxNamed = 5

// HasBudget reports whether a strategy lets clusters fail.
func HasBudget(s *shipper.RolloutStrategy) bool {
	return s != nil && (s.MaxFailures != nil ||
		slices.ContainsFunc(s.Waves, func(w shipper.Wave) bool { return w.MaxFailures != nil }))
}

// FailuresAllowed is how many of so many clusters a maxFailures lets fail. A percentage is rounded down. Nil means 0.
func FailuresAllowed(budget *intstr.IntOrString, clusters int) int {
	if budget == nil {
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(budget, clusters, false)
	if err != nil {
		return 0
	}
	return min(max(n, 0), MaxFailures)
}

// Allowed is how many of so many clusters of a wave may fail, where the Release has all clusters: its own maxFailures, else that of the
// strategy, but never all clusters of the wave. The next wave does not begin after one that is good nowhere.
func Allowed(s *shipper.RolloutStrategy, wave *shipper.Wave, clusters, all int) int {
	return max(min(covered(s, wave, clusters, all), clusters-1), 0)
}

// covered is how many clusters of a wave the maxFailures that bears on it alone would let fail.
func covered(s *shipper.RolloutStrategy, wave *shipper.Wave, clusters, all int) int {
	if wave.MaxFailures != nil {
		return FailuresAllowed(wave.MaxFailures, clusters)
	}
	return FailuresAllowed(s.MaxFailures, all)
}

// CoversAll reports whether the maxFailures of a wave itself is that of all its clusters, or more. All of them may not fail all the same.
func CoversAll(wave *shipper.Wave, clusters int) bool {
	return clusters > 0 && FailuresAllowed(wave.MaxFailures, clusters) >= clusters
}

// OverBudget says which maxFailures of a strategy failed clusters exceed; empty if they exceed none. clusters are all of the Release. A
// wave all of whose clusters have failed exceeds every maxFailures.
func (a Assigned) OverBudget(s *shipper.RolloutStrategy, clusters, failed []string) string {
	for i := range s.Waves {
		wave := &s.Waves[i]
		in, of := a.In(int32(i), failed), len(a.In(int32(i), clusters))
		is := covered(s, wave, of, len(clusters))
		switch {
		case len(in) <= Allowed(s, wave, of, len(clusters)):
		case len(in) <= is, len(in) == of && wave.MaxFailures == nil && s.MaxFailures != nil:
			return fmt.Sprintf("%s, all of wave %s, failed, which no maxFailures covers", Counted(in), wave.Name)
		case wave.MaxFailures != nil:
			allowed := describe(wave.MaxFailures, is, of)
			return fmt.Sprintf("%s of wave %s failed, and its maxFailures is %s", Counted(in), wave.Name, allowed)
		case s.MaxFailures == nil:
			return fmt.Sprintf("%s of wave %s failed, and its maxFailures is 0", Counted(in), wave.Name)
		}
	}
	allowed := FailuresAllowed(s.MaxFailures, len(clusters))
	switch {
	case s.MaxFailures != nil && len(failed) > allowed:
		return fmt.Sprintf("%s failed, and maxFailures is %s", Counted(failed), describe(s.MaxFailures, allowed, len(clusters)))
	case len(failed) > MaxFailures:
		return fmt.Sprintf("%s failed, and at most %d may", Counted(failed), MaxFailures)
	}
	return ""
}

// Counted is how many clusters there are, and some of their names.
func Counted(names []string) string {
	what := "clusters"
	if len(names) == 1 {
		what = "cluster"
	}
	list := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%d %s (%s)", len(names), what, list)
}

// describe is a budget, and what it means for so many clusters.
func describe(budget *intstr.IntOrString, allowed, clusters int) string {
	if budget == nil || budget.Type == intstr.Int {
		return fmt.Sprint(allowed)
	}
	return fmt.Sprintf("%s of %d, which is %d", budget.StrVal, clusters, allowed)
}
