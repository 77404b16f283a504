// SPDX-License-Identifier: Apache-2.0

package override

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const rbacGroup = "rbac.authorization.k8s.io"

// Change is what one rule does in one cluster. Its JSON differs where objects may differ.
type Change struct {
	// Override is the name of the ResourceOverride, as namespace/name, and Rule the index of the rule.
	Override string
	Rule     int
	// Namespace is the only one whose objects are changed; empty for all objects.
	Namespace string `json:",omitempty"`
	// Resources select the objects, without variables.
	Resources []shipper.OverriddenResource
	// Patch has no variables. Delete leaves the objects out.
	Patch  []shipper.PatchOperation `json:",omitempty"`
	Delete bool                     `json:",omitempty"`
	// Failed is why a variable has no value in this cluster; empty if all have one.
	Failed string `json:",omitempty"`
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
		for n := range o.Rules {
			rule := &o.Rules[n]
			if !inCluster(rule.ClusterTerms, cluster) {
				continue
			}
			out = append(out, values.change(o, n, namespace))
		}
	}
	return out
}

// inCluster reports whether one of the terms matches a cluster, or there are none.
func inCluster(terms []shipper.OverrideClusterTerm, cluster *shipper.Cluster) bool {
	return len(terms) == 0 || cluster != nil && slices.ContainsFunc(terms, func(t shipper.OverrideClusterTerm) bool {
		return (len(t.Names) == 0 || slices.Contains(t.Names, cluster.Name)) &&
			(t.LabelSelector == nil || matches(t.LabelSelector, placement.LabelsOf(cluster)))
	})
}

// change is what a rule does, without variables.
func (v variables) change(o *shipper.ReleaseOverride, rule int, namespace string) Change {
	out := Change{Override: o.Name, Rule: rule, Delete: o.Rules[rule].Delete}
	if !o.Global {
		out.Namespace = namespace
	}
	for _, r := range o.Resources {
		name, err := v.in(r.Name)
		if err != nil {
			out.Failed = err.Error()
		}
		r.Name = name
		out.Resources = append(out.Resources, r)
	}
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
	if c.Namespace != "" && (o.Namespace != c.Namespace || o.Group == rbacGroup) {
		return false
	}
	return slices.ContainsFunc(c.Resources, func(r shipper.OverriddenResource) bool {
		switch {
		case r.Group != o.Group || r.Kind != o.Kind:
			return false
		case r.Name != "":
			return r.Name == o.Name
		}
		return r.LabelSelector == nil || matches(r.LabelSelector, labels.Set(o.Labels))
	})
}
