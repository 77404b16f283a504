// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// clusterLabels are the labels of a cluster, also those that its object does not have.
type clusterLabels struct{ *shipper.Cluster }

var _ labels.Labels = clusterLabels{}

// LabelsOf are the labels of a cluster by which selectors find it: those of its object, its name, its region and its capabilities.
func LabelsOf(c *shipper.Cluster) labels.Labels { return clusterLabels{c} }

// Lookup returns the value of a label, and whether the cluster has it.
func (c clusterLabels) Lookup(label string) (string, bool) {
	switch label {
	case shipper.RegionLabel:
		return c.Spec.Region, true
	case shipper.ClusterLabel:
		return c.Name, true
	}
	if capability, ok := strings.CutPrefix(label, shipper.CapabilityLabelPrefix); ok && slices.Contains(c.Spec.Capabilities, capability) {
		return "", true
	}
	value, ok := c.Labels[label]
	return value, ok
}

// Has reports whether the cluster has the label.
func (c clusterLabels) Has(label string) bool {
	_, ok := c.Lookup(label)
	return ok
}

// Get returns the value of the label; empty without it.
func (c clusterLabels) Get(label string) string {
	value, _ := c.Lookup(label)
	return value
}

// term is a ClusterTerm, parsed.
type term struct {
	// names is nil for any name.
	names sets.Set[string]
	// labels are ANDed.
	labels     labels.Requirements
	properties []requirement
	// invalid is set when labels could not be parsed: then the term matches no cluster.
	invalid error
}

// requirement is a PropertyRequirement, parsed.
type requirement struct {
	shipper.PropertyRequirement
	slot int
	want value
}

// preference is a PreferredClusterTerm, parsed.
type preference struct {
	term
	weight int32
	sort   *shipper.PropertySort
	slot   int
}

// compile parses the policy.
func (d *decider) compile() {
	d.properties = slots{}
	d.spread.constraints = d.policy.TopologySpreadConstraints
	if d.policy.Type != shipper.PickN {
		d.spread.constraints = nil
	}
	d.spread.compile()
	if d.policy.Affinity == nil {
		return
	}
	for i := range d.policy.Affinity.Required {
		d.required = append(d.required, d.compileTerm(&d.policy.Affinity.Required[i]))
	}
	if d.policy.Type != shipper.PickN {
		return
	}
	for i := range d.policy.Affinity.Preferred {
		p := &d.policy.Affinity.Preferred[i]
		compiled := preference{term: d.compileTerm(&p.ClusterTerm), weight: p.Weight, sort: p.Sort}
		if p.Sort != nil {
			compiled.slot = d.properties.of(p.Sort.Property)
		}
		d.preferred = append(d.preferred, compiled)
	}
}

func (d *decider) compileTerm(t *shipper.ClusterTerm) term {
	var out term
	if len(t.Names) > 0 {
		out.names = sets.New(t.Names...)
	}
	if t.LabelSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
		if out.invalid = err; err == nil {
			out.labels, _ = selector.Requirements()
		}
	}
	for _, p := range t.Properties {
		out.properties = append(out.properties, requirement{
			PropertyRequirement: p, slot: d.properties.of(p.Name), want: parseValue(p.Name, p.Value),
		})
	}
	return out
}

// mismatch is why a term does not match a cluster: the later its kind, the more of the term matches. Its text is made only when a
// verdict has it.
type mismatch struct {
	kind  int
	label *labels.Requirement
	// property is what differs or is unknown.
	property *requirement
}

const (
	matches = iota
	nameDiffers
	selectorInvalid
	labelDiffers
	propertyUnknown
	propertyDiffers
)

// match compares the term with the cluster.
func (t *term) match(c *candidate) mismatch {
	switch {
	case t.names != nil && !t.names.Has(c.Name):
		return mismatch{kind: nameDiffers}
	case t.invalid != nil:
		return mismatch{kind: selectorInvalid}
	}
	set := clusterLabels{c.Cluster}
	for i := range t.labels {
		if r := &t.labels[i]; !r.Matches(set) {
			return mismatch{kind: labelDiffers, label: r}
		}
	}
	var out mismatch
	for i := range t.properties {
		r := &t.properties[i]
		if kind := r.match(c); kind > out.kind {
			out = mismatch{kind: kind, property: r}
		}
	}
	return out
}

// match is matches, propertyUnknown or propertyDiffers.
func (r *requirement) match(c *candidate) int {
	switch v := c.property(r.Name, r.slot); {
	case v.state != known:
		return propertyUnknown
	case r.want.state != known || !v.meets(r.Name, r.Operator, &r.want):
		return propertyDiffers
	default:
		return matches
	}
}

// message says for users what differs between the term and the cluster.
func (m mismatch) message(t *term, c *candidate) string {
	switch m.kind {
	case nameDiffers:
		return "its name is not among names"
	case selectorInvalid:
		return "labelSelector is not valid: " + shortened(t.invalid.Error(), maxQuoted)
	case labelDiffers:
		return differs(m.label, clusterLabels{c.Cluster})
	}
	r := m.property
	name, wanted := shortened(r.Name, maxQuoted), fmt.Sprintf(", wanted %s %s", r.Operator, shortened(r.Value, maxValue))
	switch v := c.property(r.Name, r.slot); v.state {
	case absent:
		return name + " is not known" + wanted
	case malformed:
		return fmt.Sprintf("%s is %q, which cannot be compared%s", name, v, wanted)
	default:
		return fmt.Sprintf("%s is %s%s", name, v, wanted)
	}
}

// differs says which label of the cluster is not as required.
func differs(r *labels.Requirement, set clusterLabels) string {
	has := "it has no label " + shortened(r.Key(), maxQuoted)
	if value, ok := set.Lookup(r.Key()); ok {
		has = fmt.Sprintf("label %s is %q", shortened(r.Key(), maxQuoted), shortened(value, maxQuoted))
	}
	return has + ", wanted " + shortened(r.String(), maxQuoted)
}

// unmatched returns why the cluster matches none of the required terms: of the terms, the one of which most matches.
func (d *decider) unmatched(c *candidate) (shipper.PlacementReason, string) {
	if len(d.required) == 0 {
		return "", ""
	}
	var nearest mismatch
	at := 0
	for i := range d.required {
		m := d.required[i].match(c)
		if m.kind == matches {
			return "", ""
		}
		if m.kind > nearest.kind {
			nearest, at = m, i
		}
	}
	message := nearest.message(&d.required[at], c)
	if len(d.required) > 1 {
		message = fmt.Sprintf("%s in placement.affinity.required[%d], and no other term matches", message, at)
	}
	switch nearest.kind {
	case propertyDiffers:
		return shipper.PlacementPropertyNotMet, message
	case propertyUnknown:
		return shipper.PlacementPropertyUnknown, message
	default:
		return shipper.PlacementAffinityNotMet, message
	}
}
