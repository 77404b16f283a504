// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// overrideCopy is the copy of a ResourceOverride that a Release has.
type overrideCopy struct {
	// Name is that of the ResourceOverride, as namespace/name.
	Name      string `json:"name"`
	Mandatory bool   `json:"mandatory,omitempty"`
}

// maxOverrides is how many copies the line of a status names.
const maxOverrides = 4

func overridesOf(rel *shipper.Release) []overrideCopy {
	var out []overrideCopy
	for i := range rel.Spec.Overrides {
		out = append(out, overrideCopy{Name: rel.Spec.Overrides[i].Name, Mandatory: rel.Spec.Overrides[i].Mandatory})
	}
	return out
}

// overrides are a line about the copies; none if there are none.
func (p *View) overrides() []string {
	if len(p.Overrides) == 0 {
		return nil
	}
	var names []string
	for _, o := range p.Overrides[:min(len(p.Overrides), maxOverrides)] {
		names = append(names, o.Name+mandatory(o.Mandatory))
	}
	text := strings.Join(names, ", ")
	if more := len(p.Overrides) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return []string{text}
}

func mandatory(is bool) string {
	if is {
		return " (mandatory)"
	}
	return ""
}

// overrideChange is how the copies of a ResourceOverride differ between two Releases.
type overrideChange struct {
	// Name is that of the ResourceOverride, as namespace/name.
	Name string `json:"name"`
	// Mandatory is true if the later copy is; the earlier one, where there is no later.
	Mandatory bool `json:"mandatory,omitempty"`
	// Before and After are digests of the copies, a sha256 in hexadecimal; empty where a Release has none. They are the same where only the
	// order in which the copies are applied differs.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// overrideChanges are the copies that differ, those of the earlier Release first. A copy that is applied in another place among those that
// both Releases have differs, too.
func overrideChanges(before, after []shipper.ReleaseOverride) []overrideChange {
	var out []overrideChange
	remaining, kept := shared(before, after), shared(after, before)
	for i := range before {
		o := &before[i]
		j := slices.IndexFunc(after, func(a shipper.ReleaseOverride) bool { return a.Name == o.Name })
		if j < 0 {
			out = append(out, overrideChange{Name: o.Name, Mandatory: o.Mandatory, Before: overrideDigest(o)})
			continue
		}
		c := overrideChange{Name: o.Name, Mandatory: after[j].Mandatory, Before: overrideDigest(o), After: overrideDigest(&after[j])}
		if c.Before != c.After || slices.Index(remaining, o.Name) != slices.Index(kept, o.Name) {
			out = append(out, c)
		}
	}
	for i := range after {
		o := &after[i]
		if !slices.Contains(kept, o.Name) {
			out = append(out, overrideChange{Name: o.Name, Mandatory: o.Mandatory, After: overrideDigest(o)})
		}
	}
	return out
}

// shared are the names of those copies that another Release has, too, in the order in which they are applied.
func shared(copies, other []shipper.ReleaseOverride) []string {
	var out []string
	for i := range copies {
		if slices.ContainsFunc(other, func(o shipper.ReleaseOverride) bool { return o.Name == copies[i].Name }) {
			out = append(out, copies[i].Name)
		}
	}
	return out
}

// overrideDigest differs where copies change something else, or elsewhere. The authors of a copy are no part of it.
func overrideDigest(o *shipper.ReleaseOverride) string {
	content := *o
	content.RequestedBy, content.EarlierWriters = "", nil
	text, _ := json.Marshal(content) // patches were decoded from JSON
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// overrideText has a line for each copy that differs; empty if none does.
func overrideText(from, to string, changes []overrideChange) string {
	if len(changes) == 0 {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "ResourceOverrides of %s and %s (the digests are of the copies in the releases):\n", from, to)
	for _, c := range changes {
		name, before, after := c.Name+mandatory(c.Mandatory), c.Before[:min(len(c.Before), shortDigest)], c.After[:min(len(c.After), shortDigest)]
		switch {
		case before == "":
			fmt.Fprintf(&out, "+ %s %s\n", name, after)
		case after == "":
			fmt.Fprintf(&out, "- %s %s\n", name, before)
		case c.Before == c.After:
			fmt.Fprintf(&out, "~ %s %s, applied in another order\n", name, after)
		default:
			fmt.Fprintf(&out, "~ %s %s, before %s\n", name, after, before)
		}
	}
	return out.String()
}
