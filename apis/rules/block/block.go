// SPDX-License-Identifier: Apache-2.0

// Package block decides which RolloutBlocks apply to a change, when, and which of them are overridden.
package block

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Bears reports whether b applies to a namespace: it is in it, or in the global namespace. A block that is being deleted
// applies until it is gone. An empty globalNamespace means that there are no global blocks.
func Bears(b *shipper.RolloutBlock, namespace, globalNamespace string) bool {
	return b.Namespace == namespace || (globalNamespace != "" && b.Namespace == globalNamespace)
}

// Verdict is the effect of RolloutBlocks on one change. Every list is sorted by namespace, then name.
type Verdict struct {
	// Effective are the blocks that stop the change.
	Effective []*shipper.RolloutBlock
	// Warning and Auditing are the blocks that would stop it if they were enforced.
	Warning, Auditing []*shipper.RolloutBlock
	// Overridden are the blocks that would stop it if they were not overridden.
	Overridden []*shipper.RolloutBlock
	// Unknown are overrides that name no block of the object's namespace or the global one, in effect or not.
	Unknown []types.NamespacedName
}

// Judge computes the Verdict for one change of an object at one time, from the blocks of its namespace and its overrides. It
// does not modify its arguments, and ignores their order and repetitions.
func Judge(bearing []*shipper.RolloutBlock, overrides []Override, c Change, now time.Time) Verdict {
	var v Verdict
	for _, b := range bearing {
		if !applies(b, c, now) {
			continue
		}
		switch {
		case slices.ContainsFunc(overrides, func(o Override) bool { return o.Honoured(b) }):
			v.Overridden = append(v.Overridden, b)
		case b.Spec.Enforcement == shipper.RolloutBlockWarn:
			v.Warning = append(v.Warning, b)
		case b.Spec.Enforcement == shipper.RolloutBlockAudit:
			v.Auditing = append(v.Auditing, b)
		default:
			v.Effective = append(v.Effective, b)
		}
	}
	for _, list := range []*[]*shipper.RolloutBlock{&v.Effective, &v.Warning, &v.Auditing, &v.Overridden} {
		*list = sort(*list)
	}
	for _, o := range overrides {
		if !slices.ContainsFunc(bearing, func(b *shipper.RolloutBlock) bool { return o.names(b) }) {
			v.Unknown = append(v.Unknown, o.Name)
		}
	}
	slices.SortFunc(v.Unknown, compareNames)
	v.Unknown = slices.Compact(v.Unknown)
	return v
}

// Blocked reports whether the change must not happen: a block is in effect, or an override names no block.
func (v Verdict) Blocked() bool {
	return len(v.Effective) > 0 || len(v.Unknown) > 0
}

// Message lists the blocks, `rollouts blocked by: namespace/name,namespace/name`, and the overrides that name no block. It is
// empty when nothing blocks.
func (v Verdict) Message() string {
	var parts []string
	if len(v.Effective) > 0 {
		parts = append(parts, shipper.BlockedBy+FormatOverrides(Names(v.Effective)))
	}
	if len(v.Unknown) > 0 {
		parts = append(parts, "the override names blocks that do not bear on this namespace: "+FormatOverrides(v.Unknown))
	}
	return strings.Join(parts, "; ")
}

// Name is the name of the block as overrides write it.
func Name(b *shipper.RolloutBlock) types.NamespacedName {
	return types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
}

// Names are the names of blocks as overrides write them, in their order.
func Names(blocks []*shipper.RolloutBlock) []types.NamespacedName {
	names := make([]types.NamespacedName, len(blocks))
	for i, b := range blocks {
		names[i] = Name(b)
	}
	return names
}

// sort sorts blocks in place and removes repetitions.
func sort(blocks []*shipper.RolloutBlock) []*shipper.RolloutBlock {
	compare := func(a, b *shipper.RolloutBlock) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	}
	slices.SortFunc(blocks, compare)
	return slices.CompactFunc(blocks, func(a, b *shipper.RolloutBlock) bool { return compare(a, b) == 0 })
}
