// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"time"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Input is what Decide judges by.
type Input struct {
	// App is the name of the Application.
	App string
	// Requirements have a placement.
	Requirements shipper.ClusterRequirements
	// Clusters are all there are, in any order.
	Clusters []shipper.Cluster
	// Current are the names of the clusters that the newest Release of the Application has; none for the first Release.
	Current []string
	// Sticky is true while the policy is the one by which Current were chosen: they are all kept then, except those that leave.
	Sticky bool
	// UnhealthyAfter is how long a cluster may be not ready and still be picked.
	UnhealthyAfter time.Duration
	// Now is the time.
	Now time.Time
}

// Verdict is the judgement of one cluster.
type Verdict struct {
	Cluster string
	Chosen  bool
	// Reason is a word, and Message says what would change it; empty for a chosen cluster.
	Reason  shipper.PlacementReason
	Message string
	// Affinity and Spread are the scores by which it was picked or outranked.
	Affinity, Spread int32
}

// Decision is which clusters a Release gets, and why.
type Decision struct {
	// Wanted is how many clusters the policy wants.
	Wanted int
	// Chosen are their names, sorted.
	Chosen []string
	// Verdicts has one for each cluster, and one for each name of PickFixed that there is no cluster of, by name.
	Verdicts []Verdict
}

// Decide chooses clusters by a placement. The result does not depend on the order of the clusters.
func Decide(in Input) Decision { return pendingDecide(in) }

// Status is the decision as a Release has it.
func (d Decision) Status() *shipper.ReleasePlacement { return d.pendingStatus() }

// Unfulfilled says for users why fewer clusters are chosen than wanted; empty when there are enough.
func (d Decision) Unfulfilled() string { return d.pendingUnfulfilled() }
