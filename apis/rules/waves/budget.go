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

// Allowed is how many of so many clusters of a wave may fail, where the Release has all clusters. A wave without a maxFailures has that of
// the strategy, but then not all of its clusters may fail: a canary of one cluster stops the rollout.
func Allowed(s *shipper.RolloutStrategy, wave *shipper.Wave, clusters, all int) int {
	switch {
	case wave.MaxFailures != nil:
		return FailuresAllowed(wave.MaxFailures, clusters)
	case s.MaxFailures != nil:
		return max(min(FailuresAllowed(s.MaxFailures, all), clusters-1), 0)
	}
	return 0
}

// OverBudget says which maxFailures of a strategy failed clusters exceed; empty if they exceed none. clusters are all of the Release.
func (a Assigned) OverBudget(s *shipper.RolloutStrategy, clusters, failed []string) string {
	for i := range s.Waves {
		wave := &s.Waves[i]
		in, of := a.In(int32(i), failed), len(a.In(int32(i), clusters))
		allowed := Allowed(s, wave, of, len(clusters))
		switch {
		case len(in) <= allowed:
		case wave.MaxFailures != nil:
			return fmt.Sprintf("%s of wave %s failed, and its maxFailures is %s", Counted(in), wave.Name, describe(wave.MaxFailures, allowed, of))
		case len(in) == of && s.MaxFailures != nil:
			return fmt.Sprintf("%s, all of wave %s, failed", Counted(in), wave.Name)
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

// HasFailed reports whether a cluster has failed within maxFailures, in a rollout that is not complete.
func HasFailed(rel *shipper.Release, cluster string) bool {
	return len(rel.Status.FailedClusters) > 0 && slices.Contains(rel.Status.FailedClusters, cluster) &&
		!shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete)
}

// Measured are the clusters of the position in which checks are made: not those that have failed.
func Measured(rel *shipper.Release, names []string) []string {
	front := Front(rel, names)
	if len(rel.Status.FailedClusters) == 0 {
		return front
	}
	return slices.DeleteFunc(slices.Clone(front), func(name string) bool { return slices.Contains(rel.Status.FailedClusters, name) })
}
