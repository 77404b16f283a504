// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Kinds of overrides of KubeFleet.
const (
	clusterOverride    = "ClusterResourceOverride"
	namespacedOverride = "ResourceOverride"
)

// overriddenObject is an object that an override of KubeFleet selects.
type overriddenObject struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	Name  string `json:"name"`
}

// fleetOverride is the spec of an override of KubeFleet.
type fleetOverride struct {
	Placement *struct {
		Name string `json:"name"`
	} `json:"placement"`
	ClusterObjects []overriddenObject `json:"clusterResourceSelectors"`
	Objects        []overriddenObject `json:"resourceSelectors"`
	Policy         struct {
		Rules []struct {
			ClusterSelector *struct {
				Terms []clusterTerm `json:"clusterSelectorTerms"`
			} `json:"clusterSelector"`
			Type    string                   `json:"overrideType"`
			Patches []shipper.PatchOperation `json:"jsonPatchOverrides"`
		} `json:"overrideRules"`
	} `json:"policy"`
}

// resourceOverrideOf makes a ResourceOverride of one of KubeFleet's: one without a namespace becomes a global one.
func resourceOverrideOf(d document, _ settings) (fleetObject, error) {
	if err := d.checkObjectName(kindOfOverrides); err != nil {
		return fleetObject{}, err
	}
	from, err := specOf[fleetOverride](d)
	if err != nil {
		return fleetObject{}, d.failed("spec", "cannot be read: %w", err)
	}
	report := &report{object: d.title()}
	global := d.GetKind() == clusterOverride
	namespace := d.GetNamespace()
	if global {
		namespace = shipper.GlobalBlocksNamespace
	}
	out := &shipper.ResourceOverride{TypeMeta: typeMeta(kindOfOverrides), ObjectMeta: fleetMetadata(d, namespace)}
	if p := from.Spec.Placement; p != nil && p.Name != "" {
		out.Spec.ApplicationNames = []string{p.Name}
		report.add("spec.placement", "an edit of it takes effect with the next Release of the Application, and not at once")
	}
	for _, o := range slices.Concat(from.Spec.ClusterObjects, from.Spec.Objects) {
		if o.Group == "" && o.Kind == "Namespace" {
			report.add("spec.clusterResourceSelectors", "selects the Namespace %s alone: name the kinds of the objects that "+
				"it contains, too", o.Name)
		}
		out.Spec.Resources = append(out.Spec.Resources, shipper.OverriddenResource{Group: o.Group, Kind: o.Kind, Name: o.Name})
	}
	from.Spec.rules(&out.Spec, report)
	if errs := override.Validate(&out.Spec, field.NewPath("spec"), global); len(errs) > 0 {
		report.add("spec", "makes a ResourceOverride that Shipper refuses: %v", errs.ToAggregate())
	}
	return fleetObject{object: out, kind: kindOfOverrides, name: out.Name, reviews: report.reviews}, nil
}

// rules converts the rules. One without a selector of clusters has no cluster for KubeFleet, and every cluster for Shipper.
func (f *fleetOverride) rules(into *shipper.ResourceOverrideSpec, report *report) {
	for i, from := range f.Policy.Rules {
		at := field.NewPath("spec", "policy", "overrideRules").Index(i)
		if from.ClusterSelector == nil {
			report.add(at.String(), "is left out: without a clusterSelector it has no cluster")
			continue
		}
		rule := shipper.OverrideRule{Delete: from.Type == "Delete"}
		for _, term := range from.ClusterSelector.Terms {
			selector := term.LabelSelector
			if selector == nil {
				selector = &metav1.LabelSelector{}
			}
			rule.ClusterTerms = append(rule.ClusterTerms, shipper.OverrideClusterTerm{LabelSelector: selector})
		}
		if byProperties(from.ClusterSelector.Terms) {
			report.add(at.Child("clusterSelector").String(), "is left out with its rule: Shipper selects clusters of a rule by names and labels")
			continue
		}
		if !rule.Delete {
			for _, operation := range from.Patches {
				if value, there := operation["value"]; there {
					operation["value"] = renamed(value)
				}
				rule.Patch = append(rule.Patch, operation)
			}
		}
		into.Rules = append(into.Rules, rule)
	}
}

// byProperties reports whether a term selects by properties.
func byProperties(terms []clusterTerm) bool {
	return slices.ContainsFunc(terms, func(t clusterTerm) bool { return len(t.PropertySelector.MatchExpressions) > 0 })
}

// hasClusters reports whether an override has a rule that is converted. One that cannot be read is, for its errors.
func hasClusters(d document) bool {
	from, err := specOf[fleetOverride](d)
	if err != nil {
		return true
	}
	for _, rule := range from.Spec.Policy.Rules {
		if rule.ClusterSelector != nil && !byProperties(rule.ClusterSelector.Terms) {
			return true
		}
	}
	return false
}

// fleetVariable is a variable of KubeFleet, or what Shipper would take for one.
var fleetVariable = regexp.MustCompile(`\$\{(MEMBER-CLUSTER-LABEL-KEY-([^}']+)\}|MEMBER-CLUSTER-NAME\})?`)

// renamed gives the variables in a JSON value their names in Shipper.
func renamed(value any) any {
	switch value := value.(type) {
	case string:
		return fleetVariable.ReplaceAllStringFunc(value, func(found string) string {
			name := strings.TrimSuffix(strings.TrimPrefix(found, "${"), "}")
			label, isLabel := strings.CutPrefix(name, "MEMBER-CLUSTER-LABEL-KEY-")
			switch {
			case name == "MEMBER-CLUSTER-NAME":
				return "${cluster.name}"
			case isLabel:
				return "${cluster.labels['" + label + "']}"
			}
			return "$${" // a text, for KubeFleet
		})
	case map[string]any:
		for key := range value {
			value[key] = renamed(value[key])
		}
	case []any:
		for i := range value {
			value[i] = renamed(value[i])
		}
	}
	return value
}
