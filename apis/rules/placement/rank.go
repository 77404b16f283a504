// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// rank scores the candidates and sorts them by all but spread: affinity, already there, preference of the Application, name.
func (d *decider) rank(candidates []*candidate) {
	for _, c := range candidates {
		c.preference = Score(d.in.App, c.Cluster)
		c.verdict.Affinity = 0
	}
	for i := range d.preferred {
		d.preferred[i].add(candidates)
	}
	slices.SortFunc(candidates, compareRank)
}

// compareRank is negative when a ranks higher than b, spread apart.
func compareRank(a, b *candidate) int {
	if d := cmp.Compare(b.verdict.Affinity, a.verdict.Affinity); d != 0 {
		return d
	}
	if a.current != b.current {
		if a.current {
			return -1
		}
		return 1
	}
	if d := cmp.Compare(b.preference, a.preference); d != 0 {
		return d
	}
	return strings.Compare(a.Name, b.Name)
}

// add adds the preference's score to the candidates that its term matches. A sorter gives each a share of the weight by its place
// between the least and the greatest value of these.
func (p *preference) add(candidates []*candidate) {
	least, most := math.Inf(1), math.Inf(-1)
	var matching []*candidate
	for _, c := range candidates {
		if p.match(c).kind != matches {
			continue
		}
		if p.sort == nil {
			c.verdict.Affinity += p.weight
			continue
		}
		if v := c.property(p.sort.Property, p.slot); v.state == known {
			matching = append(matching, c)
			amount := v.amount(p.sort.Property)
			least, most = min(least, amount), max(most, amount)
		}
	}
	for _, c := range matching {
		share := 1.0
		if least < most {
			share = (c.property(p.sort.Property, p.slot).amount(p.sort.Property) - least) / (most - least)
			if p.sort.Order == shipper.SortAscending {
				share = 1 - share
			}
		}
		c.verdict.Affinity += int32(math.Round(share * float64(p.weight)))
	}
}

// pick chooses n of the ranked candidates one by one, each time the one that serves the spread best, and rejects the rest.
func (d *decider) pick(ranked []*candidate, n int) {
	groups := d.groups(ranked)
	for ; n > 0; n-- {
		best := d.best(groups)
		if best < 0 {
			break
		}
		c := groups[best][0]
		groups[best] = groups[best][1:]
		d.choose(c)
		d.spread.add(c)
	}
	d.spread.sum()
	for _, group := range groups {
		d.rejectRest(group, n > 0)
	}
}

// rejectRest rejects what is left of a group. All of it has the same spread score and, when the search ended early, exceeds the same
// constraint.
func (d *decider) rejectRest(group []*candidate, early bool) {
	if len(group) == 0 {
		return
	}
	score, violated := d.spread.score(group[0].domains)
	reason, message := shipper.PlacementOutranked, d.outranked()
	if violated >= 0 && early {
		reason, message = shipper.PlacementSpreadViolated, d.spread.violation(group[0], violated)
	}
	for _, c := range group {
		c.verdict.Spread = score
		d.reject(c, reason, message)
	}
}

// groups splits the candidates by their domains, so that each pick compares only the first of each group.
func (d *decider) groups(ranked []*candidate) [][]*candidate {
	if d.spread.empty() {
		return [][]*candidate{ranked}
	}
	var out [][]*candidate
	numbers := map[string]int{}
	var text []byte
	for _, c := range ranked {
		text = signature(text[:0], c.domains)
		number, ok := numbers[string(text)]
		if !ok {
			number = len(out)
			numbers[string(text)] = number
			out = append(out, nil)
		}
		out[number] = append(out[number], c)
	}
	return out
}

// best is the index of the group with the candidate to pick next, whose spread score it sets; -1 when no candidate may be picked.
func (d *decider) best(groups [][]*candidate) int {
	d.spread.sum()
	best, bestScore := -1, int32(0)
	for i, group := range groups {
		if len(group) == 0 {
			continue
		}
		score, violated := d.spread.score(group[0].domains)
		if violated >= 0 {
			continue
		}
		if best < 0 || score > bestScore || score == bestScore && compareRank(group[0], groups[best][0]) < 0 {
			best, bestScore = i, score
		}
	}
	if best >= 0 {
		groups[best][0].verdict.Spread = bestScore
	}
	return best
}

// outranked says why a cluster that fits is not chosen.
func (d *decider) outranked() string {
	if d.policy.Count == nil {
		return "placement.count is absent: set it"
	}
	return fmt.Sprintf("placement.count is %d, and others are chosen before it: raise it, or prefer this cluster in placement.affinity",
		d.count())
}
