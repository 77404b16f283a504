// SPDX-License-Identifier: Apache-2.0

package waves

import (
	"slices"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Failures are the clusters that have failed within maxFailures in the rollout of a Release.
type Failures struct {
	// Counted are those that count against maxFailures, sorted: the rollout goes on without them.
	Counted []string
	// Recovering are those that were ready again, sorted by name: they move with the others, and fail again if they miss their time.
	Recovering []shipper.RecoveringCluster
}

// FailedIn are the failures of a Release, by its status alone: none once it is complete, and none in clusters that it has no more.
func FailedIn(rel *shipper.Release) Failures {
	counted, recovering := rel.Status.FailedClusters, rel.Status.RecoveringClusters
	if len(counted) == 0 && len(recovering) == 0 || shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete) {
		return Failures{}
	}
	var out Failures
	chosen := stamp.Clusters(rel)
	for _, name := range counted {
		if _, is := slices.BinarySearch(chosen, name); is {
			out.Counted = append(out.Counted, name)
		}
	}
	for _, one := range recovering {
		if _, is := slices.BinarySearch(chosen, one.Name); is && !out.Counts(one.Name) {
			out.Recovering = append(out.Recovering, one)
		}
	}
	return out
}

// Counts reports whether a cluster counts against maxFailures.
func (f Failures) Counts(cluster string) bool { return slices.Contains(f.Counted, cluster) }

// Recovery is what is known of a cluster that was ready again; nil if it is none.
func (f Failures) Recovery(cluster string) *shipper.RecoveringCluster {
	i := slices.IndexFunc(f.Recovering, func(c shipper.RecoveringCluster) bool { return c.Name == cluster })
	if i < 0 {
		return nil
	}
	return &f.Recovering[i]
}

// Lacks reports whether a cluster has failed, and has not had all that the position asks for since.
func (f Failures) Lacks(cluster string) bool {
	recovery := f.Recovery(cluster)
	return f.Counts(cluster) || recovery != nil && !recovery.CaughtUp
}

// Measured are the clusters in which the checks of the position are made: those that it is about but for failed ones, and those of any wave
// that have caught up since it was requested.
func Measured(rel *shipper.Release, names []string) []string {
	front, f := Front(rel, names), FailedIn(rel)
	if len(f.Counted) == 0 && len(f.Recovering) == 0 {
		return front
	}
	out := slices.DeleteFunc(slices.Clone(front), f.Lacks)
	for _, one := range f.Recovering {
		if one.CaughtUp && !slices.Contains(out, one.Name) {
			out = append(out, one.Name)
		}
	}
	slices.Sort(out)
	return out
}
