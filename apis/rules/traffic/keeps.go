// SPDX-License-Identifier: Apache-2.0

package traffic

// Share says whether a Release is to take part in serving an Application, and whether it can.
type Share struct {
	// Weighs is true for a Release that has a weight.
	Weighs bool
	// Lacks is true while the Release lacks Pods that it is asked to have, or these do not serve as asked.
	Lacks bool
	// Ready is true while any Pods of the Release can serve.
	Ready bool
}

// KeepsServing reports whether what serves of the i-th Release stays because another that has a weight lacks Pods. shares are those of all,
// the oldest first. A Release that lacks Pods does not count once a newer one, which replaces both, has all of its own: the older one may
// be broken for good.
func KeepsServing(i int, shares []Share) bool {
	from := 0
	for j := i + 1; j < len(shares); j++ {
		if shares[j].Weighs && !shares[j].Lacks && shares[j].Ready {
			from = j
		}
	}
	for j := from; j < len(shares); j++ {
		if j != i && shares[j].Weighs && shares[j].Lacks {
			return true
		}
	}
	return false
}
