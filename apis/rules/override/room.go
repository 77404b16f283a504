// SPDX-License-Identifier: Apache-2.0

package override

import (
	"encoding/json"
	"fmt"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	// MaxBytes bounds the spec of a ResourceOverride, as JSON.
	MaxBytes = 64 << 10
	// MaxPairs bounds the pairs of a resource and a rule in a ResourceOverride. Each may be compared with each object.
	MaxPairs = 500
	// MaxInNamespace bounds the ResourceOverrides of a namespace: all of them are read for a new Release, and in a review.
	MaxInNamespace = 200
	// MaxAuthor bounds the name of the author, in characters. The CRD of Releases has the same bound.
	MaxAuthor = 1024
)

// Size is what copies of ResourceOverrides take: their number, the operations in their patches, the pairs of a resource and a rule, and
// their JSON.
type Size struct{ Copies, Operations, Pairs, Bytes int }

// most is the room of a Release. That of mandatory copies is their own, so that those of today fit beside the others of a Release that a
// rollback restores. Together they are 500 copies, which the CRD allows, 1,000 operations, 2,000 pairs and 512 KiB.
func most(mandatory bool) Size {
	if mandatory {
		return Size{Copies: 100, Operations: 250, Pairs: 500, Bytes: 128 << 10}
	}
	return Size{Copies: 400, Operations: 750, Pairs: 1500, Bytes: 384 << 10}
}

// sizeOf is the size of one copy.
func sizeOf(c *shipper.ReleaseOverride) Size {
	text, _ := json.Marshal(c) // patches were decoded from JSON
	return Size{Copies: 1, Operations: operations(c.Rules), Pairs: len(c.Resources) * len(c.Rules), Bytes: len(text) + 1}
}

func (s Size) plus(o Size) Size {
	return Size{s.Copies + o.Copies, s.Operations + o.Operations, s.Pairs + o.Pairs, s.Bytes + o.Bytes}
}

// Outline is a ResourceOverride without resources, rules and most metadata, with the size of its copy. Many of them take little memory.
type Outline struct {
	shipper.ResourceOverride
	Size Size
}

// OutlineOf is the outline of a ResourceOverride. It shares what selects Applications.
func OutlineOf(o *shipper.ResourceOverride, global string) Outline {
	c := copyOf(o, global)
	out := Outline{Size: sizeOf(&c)}
	out.Namespace, out.Name, out.DeletionTimestamp = o.Namespace, o.Name, o.DeletionTimestamp
	out.Spec.ApplicationNames, out.Spec.Applications, out.Spec.Mandatory = o.Spec.ApplicationNames, o.Spec.Applications, o.Spec.Mandatory
	return out
}

// Room is what the copies of a Release take. The zero Room is empty.
type Room struct{ others, mandatory Size }

// Add adds a copy.
func (r *Room) Add(mandatory bool, s Size) {
	if mandatory {
		r.mandatory = r.mandatory.plus(s)
	} else {
		r.others = r.others.plus(s)
	}
}

// Check returns an error if the copies are more, larger or longer than a Release may keep.
func (r *Room) Check() error {
	if err := r.others.check("ResourceOverrides", most(false), "delete some, or let them name fewer Applications"); err != nil {
		return err
	}
	return r.mandatory.check("mandatory ResourceOverrides", most(true), "delete some, or make some optional")
}

func (s Size) check(kind string, most Size, fix string) error {
	const have = "%d %s bear on the Application and have %d %s, more than the %d that a Release may keep: %s"
	switch {
	case s.Copies > most.Copies:
		return fmt.Errorf("%d %s bear on the Application, more than the %d that a Release may keep: %s", s.Copies, kind, most.Copies, fix)
	case s.Operations > most.Operations:
		return fmt.Errorf(have, s.Copies, kind, s.Operations, "operations", most.Operations, fix)
	case s.Pairs > most.Pairs:
		return fmt.Errorf(have, s.Copies, kind, s.Pairs, "pairs of a resource and a rule", most.Pairs, fix)
	case s.Bytes > most.Bytes:
		return fmt.Errorf(have, s.Copies, kind, s.Bytes, "bytes", most.Bytes, fix)
	}
	return nil
}

// CheckSize is Check of the copies of a Release.
func CheckSize(pinned []shipper.ReleaseOverride) error {
	var room Room
	for i := range pinned {
		room.Add(pinned[i].Mandatory, sizeOf(&pinned[i]))
	}
	return room.Check()
}

// operations is how many operations rules have in their patches.
func operations(rules []shipper.OverrideRule) int {
	n := 0
	for i := range rules {
		n += len(rules[i].Patch)
	}
	return n
}
