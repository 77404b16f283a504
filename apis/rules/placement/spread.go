// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"encoding/binary"
	"fmt"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// exceeds is added to the score of a cluster for each constraint with ScheduleAnyway that it would exceed.
const exceeds = -1000

// spread counts the chosen clusters for each value of each constraint's label.
type spread struct {
	constraints []shipper.TopologySpreadConstraint
	// domains number the values of the label, for each constraint.
	domains []map[string]int
	// counts are the chosen clusters of each domain, for each constraint.
	counts [][]int
	// least, leastOf and most are the least count, the number of domains that have it, and the greatest, for each constraint.
	least, leastOf, most []int
	// buffer is room for domains of candidates.
	buffer []int
}

func (s *spread) empty() bool { return len(s.constraints) == 0 }

func (s *spread) compile() {
	n := len(s.constraints)
	s.domains, s.counts = make([]map[string]int, n), make([][]int, n)
	s.least, s.leastOf, s.most = make([]int, n), make([]int, n), make([]int, n)
	for i := range s.domains {
		s.domains[i] = map[string]int{}
	}
}

// register makes the values of the cluster's labels domains. A chosen cluster counts there at once.
func (s *spread) register(c *candidate) {
	if s.empty() {
		return
	}
	n := len(s.constraints)
	if len(s.buffer) < n {
		s.buffer = make([]int, 100*n)
	}
	c.domains, s.buffer = s.buffer[:n:n], s.buffer[n:]
	set := clusterLabels{c.Cluster}
	for i := range s.constraints {
		value, ok := set.Lookup(s.constraints[i].TopologyKey)
		if !ok {
			c.domains[i] = -1
			continue
		}
		domain, ok := s.domains[i][value]
		if !ok {
			domain = len(s.counts[i])
			s.domains[i][value] = domain
			s.counts[i] = append(s.counts[i], 0)
		}
		c.domains[i] = domain
	}
	if c.verdict.Chosen {
		s.add(c)
	}
}

// add counts the cluster in its domains.
func (s *spread) add(c *candidate) {
	for i, domain := range c.domains {
		if domain >= 0 {
			s.counts[i][domain]++
		}
	}
}

// sum finds the least and the greatest counts.
func (s *spread) sum() {
	for i, counts := range s.counts {
		s.least[i], s.leastOf[i], s.most[i] = 0, 0, 0
		for j, n := range counts {
			switch {
			case j == 0 || n < s.least[i]:
				s.least[i], s.leastOf[i] = n, 1
			case n == s.least[i]:
				s.leastOf[i]++
			}
			s.most[i] = max(s.most[i], n)
		}
	}
}

// score is how much one more cluster in these domains would serve the spread, after sum: 1 for each constraint of which it would
// lower the skew, -1 where it would raise it, and -1000 where the constraint would be exceeded. violated is the index of a
// constraint with DoNotSchedule that would be exceeded; -1 when there is none.
func (s *spread) score(domains []int) (score int32, violated int) {
	for i, domain := range domains {
		if domain < 0 {
			continue
		}
		n := s.counts[i][domain]
		if n+1-s.least[i] > int(max(1, s.constraints[i].MaxSkew)) {
			if s.constraints[i].WhenUnsatisfiable != shipper.ScheduleAnyway {
				return 0, i
			}
			score += exceeds
			continue
		}
		before, least := s.most[i]-s.least[i], s.least[i]
		if n == least && s.leastOf[i] == 1 {
			least++
		}
		score += int32(before - (max(s.most[i], n+1) - least)) //nolint:gosec // -1, 0 or 1
	}
	return score, -1
}

// violation says which constraint the cluster would exceed.
func (s *spread) violation(c *candidate, i int) string {
	key := s.constraints[i].TopologyKey
	return fmt.Sprintf("%s %q would have %d more clusters than another, and maxSkew is %d: raise it, or let more clusters fit elsewhere",
		shortened(key, maxQuoted), clusterLabels{c.Cluster}.Get(key), s.counts[i][c.domains[i]]+1-s.least[i],
		max(1, s.constraints[i].MaxSkew))
}

// signature appends to out what is equal for clusters in the same domains.
func signature(out []byte, domains []int) []byte {
	for _, domain := range domains {
		out = binary.AppendVarint(out, int64(domain))
	}
	return out
}
