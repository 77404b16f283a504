// SPDX-License-Identifier: Apache-2.0

package override

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const rbacGroup = "rbac.authorization.k8s.io"

// Change is what one rule does in one cluster. Digest compares changes.
type Change struct {
	// Override is the name of the ResourceOverride, as namespace/name, and Rule the index of the rule.
	Override string
	Rule     int
	// Namespace is the only one whose objects are changed; empty for all objects.
	Namespace string `json:",omitempty"`
	// Selected are the objects; nil for none. All rules of a ResourceOverride share it.
	Selected *Selection `json:"-"`
	// Patch has no variables. Delete leaves the objects out.
	Patch  []shipper.PatchOperation `json:",omitempty"`
	Delete bool                     `json:",omitempty"`
	// Failed is why a variable has no value in this cluster; empty if all have one.
	Failed string `json:",omitempty"`
}

// Selection are the resources of a ResourceOverride, without variables, with their label selectors parsed. It never changes.
type Selection struct {
	resources []shipper.OverriddenResource
	selectors []labels.Selector
}

// Object is what decides whether a change concerns an object.
type Object struct {
	Group, Kind, Namespace, Name string
	Labels                       map[string]string
}

// Resolve are the changes of a Release's overrides in a cluster, in the order in which they are made. namespace and release are those of
// the Release. cluster is nil if it is not known: then rules for all clusters are left, and variables of clusters have no value.
func Resolve(pinned []shipper.ReleaseOverride, namespace, release string, cluster *shipper.Cluster) []Change {
	var out []Change
	values := variables{release: release, cluster: cluster}
	for i := range pinned {
		o := &pinned[i]
		var selected *Selection
		failed := ""
		for n := range o.Rules {
			if !InCluster(&o.Rules[n], cluster) {
				continue
			}
			if selected == nil {
				selected, failed = values.selection(o.Resources)
			}
			c := values.change(o, n, selected, failed)
			if !o.Global {
				c.Namespace = namespace
			}
			out = append(out, c)
		}
	}
	return out
}

// InCluster reports whether one of a rule's terms matches a cluster, or it has none. A cluster that is not known is nil.
func InCluster(rule *shipper.OverrideRule, cluster *shipper.Cluster) bool {
	terms := rule.ClusterTerms
	return len(terms) == 0 || cluster != nil && slices.ContainsFunc(terms, func(t shipper.OverrideClusterTerm) bool {
		return (len(t.Names) == 0 || slices.Contains(t.Names, cluster.Name)) &&
			(t.LabelSelector == nil || parse(t.LabelSelector).Matches(placement.LabelsOf(cluster)))
	})
}

// Select are the objects that resources select. Names must have no variables.
func Select(resources []shipper.OverriddenResource) *Selection {
	out := &Selection{resources: resources, selectors: make([]labels.Selector, len(resources))}
	for i := range resources {
		out.selectors[i] = labels.Everything()
		if s := resources[i].LabelSelector; s != nil {
			out.selectors[i] = parse(s)
		}
	}
	return out
}

// selection is Select without variables. failed is why one has no value.
func (v variables) selection(resources []shipper.OverriddenResource) (out *Selection, failed string) {
	named := slices.Clone(resources)
	for i := range named {
		name, err := v.in(named[i].Name)
		if err != nil {
			failed = err.Error()
		}
		named[i].Name = name
	}
	return Select(named), failed
}

// change is what a rule does to what is selected, without variables.
func (v variables) change(o *shipper.ReleaseOverride, rule int, selected *Selection, failed string) Change {
	out := Change{Override: o.Name, Rule: rule, Selected: selected, Delete: o.Rules[rule].Delete, Failed: failed}
	for i, operation := range o.Rules[rule].Patch {
		value, there := operation["value"]
		if there {
			replaced, err := v.deep(value)
			if err != nil {
				out.Failed = fmt.Sprintf("patch[%d]: %v", i, err)
			}
			operation = operation.DeepCopy()
			operation["value"] = replaced
		}
		out.Patch = append(out.Patch, operation)
	}
	return out
}

// Concerns reports whether the change is one of an object.
func (c *Change) Concerns(o Object) bool {
	if c.Selected == nil || c.Namespace != "" && (o.Namespace != c.Namespace || o.Group == rbacGroup) {
		return false
	}
	for i := range c.Selected.resources {
		r := &c.Selected.resources[i]
		if r.Group != o.Group || r.Kind != o.Kind {
			continue
		}
		if r.Name != "" && r.Name == o.Name || r.Name == "" && c.Selected.selectors[i].Matches(labels.Set(o.Labels)) {
			return true
		}
	}
	return false
}

// Digest differs where the changes of two clusters may differ. It writes what rules share once, and keeps no text: that of all rules in all
// clusters may take gigabytes.
func Digest(changes []Change) [sha256.Size]byte {
	h := sha256.New()
	text := json.NewEncoder(h)
	for i := range changes {
		c := &changes[i]
		if i == 0 || c.Selected != changes[i-1].Selected {
			var of []shipper.OverriddenResource
			if c.Selected != nil {
				of = c.Selected.resources
			}
			_ = text.Encode(of) // a hash takes all writes, and patches were decoded from JSON
		}
		_ = text.Encode(c)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// parse is a label selector that can be matched. One that cannot be read matches nothing.
func parse(selector *metav1.LabelSelector) labels.Selector {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return labels.Nothing()
	}
	return parsed
}
