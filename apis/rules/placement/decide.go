// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Input is what Decide judges by.
type Input struct {
	// App is the name of the Application.
	App string
	// Requirements have a placement; for Select, that or regions.
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
	// Reason of a chosen cluster is Picked, or Kept when it is one of Current.
	Reason shipper.PlacementReason
	// Message says what would change the verdict; empty for a chosen cluster.
	Message string
	// Affinity and Spread are the scores by which it was picked or outranked; 0 for a cluster that was kept without being ranked.
	Affinity, Spread int32
}

// Decision is which clusters a Release gets, and why.
type Decision struct {
	// Wanted is how many clusters the policy wants; for PickAll, as many as are chosen, and at least 1.
	Wanted int
	// Chosen are their names, sorted; nil when there are none.
	Chosen []string
	// Verdicts has one for each cluster, and one for each name of PickFixed that there is no cluster of, by name.
	Verdicts []Verdict
}

// Decide chooses clusters by a placement; without one it chooses none. The result does not depend on the order of the clusters,
// and the clusters are not changed. Decide accepts what Validate refuses: a term that cannot be read matches no cluster.
func Decide(in Input) Decision {
	d := newDecider(in)
	if d.policy.Type == shipper.PickFixed {
		return d.fixed()
	}
	d.keep()
	fit := d.filter()
	if d.policy.Type == shipper.PickN {
		wanted := d.count()
		d.rank(fit)
		d.pick(fit, wanted-d.kept)
		return d.decision(wanted)
	}
	for _, c := range fit {
		d.choose(c)
	}
	return d.decision(max(1, d.kept+len(fit)))
}

// StatusOf is what placements read of a cluster's status: no other change of a status makes another choice.
func StatusOf(s shipper.ClusterStatus) shipper.ClusterStatus {
	out := shipper.ClusterStatus{
		KubernetesVersion: s.KubernetesVersion, Nodes: s.Nodes, Capacity: s.Capacity, Allocatable: s.Allocatable, Properties: s.Properties,
	}
	for _, c := range s.Conditions {
		if c.Type == shipper.ClusterReady || c.Type == shipper.ClusterJoined {
			out.Conditions = append(out.Conditions, c)
		}
	}
	return out
}

// candidate is a cluster while it is judged.
type candidate struct {
	*shipper.Cluster
	verdict *Verdict
	// current is true for one of Input.Current.
	current bool
	// values of the properties that the policy names, by slot.
	values []value
	// preference is the Score; only of candidates that are ranked.
	preference float64
	// domains are those of the cluster, one for each constraint; -1 without the label.
	domains []int
}

// decider is the state of one call of Decide.
type decider struct {
	in         Input
	policy     *shipper.Placement
	required   []term
	preferred  []preference
	properties slots
	spread     spread
	candidates []candidate
	verdicts   []Verdict
	// kept is the number of candidates that are kept before any is picked.
	kept int
}

func newDecider(in Input) *decider {
	d := &decider{in: in, policy: in.Requirements.Placement}
	if d.policy == nil {
		none := int32(0)
		d.policy = &shipper.Placement{Type: shipper.PickN, Count: &none}
	}
	d.compile()
	current := sets.New(in.Current...)
	d.candidates, d.verdicts = make([]candidate, len(in.Clusters)), make([]Verdict, len(in.Clusters))
	values := make([]value, len(in.Clusters)*len(d.properties))
	for i, c := range sorted(in.Clusters) {
		d.verdicts[i].Cluster = c.Name
		d.candidates[i] = candidate{Cluster: c, verdict: &d.verdicts[i], current: current.Has(c.Name), values: values[:len(d.properties)]}
		values = values[len(d.properties):]
	}
	return d
}

// count is how many clusters PickN chooses.
func (d *decider) count() int {
	if d.policy.Count == nil {
		return 0
	}
	return int(max(0, *d.policy.Count))
}

// keep chooses Current, if the policy is sticky. Of more than PickN wants, which happens only when the policy is not the one by
// which they were chosen, it keeps those that rank highest without spread.
func (d *decider) keep() {
	if !d.in.Sticky {
		return
	}
	var kept []*candidate
	for i := range d.candidates {
		if c := &d.candidates[i]; c.current && c.DeletionTimestamp.IsZero() {
			kept = append(kept, c)
		}
	}
	if d.policy.Type == shipper.PickN && len(kept) > d.count() {
		d.rank(kept)
		for _, c := range kept[d.count():] {
			d.reject(c, shipper.PlacementOutranked, d.outranked())
		}
		kept = kept[:d.count()]
	}
	for _, c := range kept {
		c.verdict.Affinity = 0
		d.choose(c)
	}
	d.kept = len(kept)
}

// fixed is the decision of PickFixed. It does not look at readiness, taints and unschedulable: the content waits for the cluster.
func (d *decider) fixed() Decision {
	missing := sets.New(d.policy.Clusters...)
	wanted := len(missing)
	for i := range d.candidates {
		c := &d.candidates[i]
		named := missing.Has(c.Name)
		missing.Delete(c.Name)
		switch reason, message := d.unfitForFixed(c, named); {
		case reason != "":
			d.reject(c, reason, message)
		default:
			d.choose(c)
		}
	}
	for name := range missing {
		d.verdicts = append(d.verdicts, Verdict{
			Cluster: name, Reason: shipper.PlacementNotJoined,
			Message: "there is no Cluster " + quoted(name) + ": it is chosen when it joins",
		})
	}
	slices.SortFunc(d.verdicts, func(a, b Verdict) int { return strings.Compare(a.Cluster, b.Cluster) })
	return d.decision(wanted)
}

func (d *decider) choose(c *candidate) {
	c.verdict.Chosen, c.verdict.Reason = true, shipper.PlacementPicked
	if c.current {
		c.verdict.Reason = shipper.PlacementKept
	}
}

func (d *decider) reject(c *candidate, reason shipper.PlacementReason, message string) {
	c.verdict.Reason, c.verdict.Message = reason, message
}

func (d *decider) decision(wanted int) Decision {
	return Decision{Wanted: wanted, Chosen: chosenOf(d.verdicts), Verdicts: d.verdicts}
}

// chosenOf returns the names of the chosen clusters, sorted as the verdicts are.
func chosenOf(verdicts []Verdict) []string {
	var out []string
	for i := range verdicts {
		if verdicts[i].Chosen {
			out = append(out, verdicts[i].Cluster)
		}
	}
	return out
}

// sorted returns pointers to the clusters, by name.
func sorted(clusters []shipper.Cluster) []*shipper.Cluster {
	out := make([]*shipper.Cluster, len(clusters))
	for i := range clusters {
		out[i] = &clusters[i]
	}
	slices.SortFunc(out, func(a, b *shipper.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return out
}
