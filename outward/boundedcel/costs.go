// SPDX-License-Identifier: Apache-2.0

package boundedcel

import (
	"slices"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

const (
	// Budget bounds the cost of one evaluation: 2.5 MB of texts, or 250,000 calls.
	Budget = 250_000
	// bytesPerCost is how many bytes of text a call reads or writes for a cost of 1.
	bytesPerCost = 10
	// MaxBytes bounds a text that a call gives.
	MaxBytes = 64 << 10
	// MaxElements bounds a list that a call gives.
	MaxElements = 4000
)

// costs charges calls for the bytes of their arguments and their result. The API server's estimate takes 1 for dyn(a) + dyn(b).
type costs struct{}

// CallCost is over the budget if the result is larger than a value may be.
func (costs) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	total := 1 + size(result)/bytesPerCost
	for _, arg := range args {
		total += size(arg) / bytesPerCost
	}
	switch {
	case len(args) < 2:
	case function == "contains", function == "indexOf", function == "lastIndexOf":
		total += size(args[0]) * size(args[1]) / (bytesPerCost * bytesPerCost)
	case function == operators.In:
		total += elements(args[1])
	case function == "split":
		total += elements(result)
	}
	if slices.Contains(Aggregations, function) && len(args) == 1 {
		total += traversal(args[0])
	}
	if size(result) > MaxBytes || elements(result) > MaxElements {
		total = Budget + 1
	}
	return &total
}

// size is the number of bytes of a text.
func size(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v))
	case types.Bytes:
		return uint64(len(v))
	default:
		return 0
	}
}

// traversal is the cost of reading each element of a list once.
func traversal(v ref.Val) uint64 {
	list, ok := v.(traits.Lister)
	if !ok {
		return 0
	}
	total := elements(v)
	for i := list.Iterator(); i.HasNext() == types.True; {
		total += size(i.Next()) / bytesPerCost
	}
	return total
}

// elements is the number of elements of a list.
func elements(v ref.Val) uint64 {
	if list, ok := v.(traits.Lister); ok {
		if n, ok := list.Size().(types.Int); ok && n > 0 {
			return uint64(n)
		}
	}
	return 0
}
