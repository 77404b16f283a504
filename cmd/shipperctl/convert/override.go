// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"reflect"
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
	// Version is not needed: an object has the fields that a patch names in one version, and Shipper overrides what it writes.
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	// SelectionScope says whether a Namespace is selected with all that is in it, which is the default.
	SelectionScope string `json:"selectionScope"`
}

// fleetOverride is the spec of an override of KubeFleet.
type fleetOverride struct {
	Placement *struct {
		Name string `json:"name"`
		// Scope says of which kind the placement is. One with a namespace is in that of the override, as its Application is.
		Scope string `json:"scope"`
	} `json:"placement"`
	ClusterObjects []overriddenObject `json:"clusterResourceSelectors"`
	Objects        []overriddenObject `json:"resourceSelectors"`
	Policy         struct {
		Rules []fleetRule `json:"overrideRules"`
	} `json:"policy"`
}

// fleetRule is a rule of an override of KubeFleet.
type fleetRule struct {
	ClusterSelector *struct {
		Terms []clusterTerm `json:"clusterSelectorTerms"`
	} `json:"clusterSelector"`
	Type    string                   `json:"overrideType"`
	Patches []shipper.PatchOperation `json:"jsonPatchOverrides"`
}

// overrideTypes are the values of overrideType: whether the object is deleted.
var overrideTypes = map[string]overrideType{"JSONPatch": patches, "Delete": deletes}

type overrideType string

const (
	patches overrideType = "patch"
	deletes overrideType = "delete"
)

// resourceOverrideOf makes a ResourceOverride of one of KubeFleet's: one without a namespace becomes a global one.
func resourceOverrideOf(d document, with settings) (fleetObject, error) {
	var from struct {
		Spec fleetOverride `json:"spec"`
	}
	if err := d.checkObjectName(kindOfOverrides); err != nil {
		return fleetObject{}, err
	}
	if err := decodeInto(d, &from); err != nil {
		return fleetObject{}, err
	}
	report := &report{object: d.title()}
	report.unread(d.Object["spec"], reflect.TypeFor[fleetOverride](), "spec", unconvertedOverride)
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
		o.report(global, report)
		out.Spec.Resources = append(out.Spec.Resources, shipper.OverriddenResource{Group: o.Group, Kind: o.Kind, Name: o.Name})
	}
	if err := from.Spec.rules(d, &out.Spec, report); err != nil {
		return fleetObject{}, err
	}
	from.Spec.reportElsewhere(d, with, report)
	if errs := override.Validate(&out.Spec, field.NewPath("spec"), global); len(errs) > 0 {
		report.add("spec", "makes a ResourceOverride that Shipper refuses: %v", errs.ToAggregate())
	}
	return fleetObject{object: out, kind: kindOfOverrides, name: out.Name, reviews: report.reviews}, nil
}

// report reports a Namespace: KubeFleet selects what is in it, too, and Shipper not even the Namespace from within it.
func (o *overriddenObject) report(global bool, report *report) {
	switch {
	case o.Group != "" || o.Kind != "Namespace":
	case !global:
		report.add("spec.resourceSelectors", "selects the Namespace %s, on which a ResourceOverride of a namespace does not bear: select it by "+
			"one in the namespace %s", o.Name, shipper.GlobalBlocksNamespace)
	case o.SelectionScope != "NamespaceOnly":
		report.add("spec.clusterResourceSelectors", "selects the Namespace %s alone: name the kinds of the objects that it contains, too",
			o.Name)
	}
}

// unconvertedOverride has what to do instead of fields of an override that are not converted.
var unconvertedOverride = map[string]string{
	"labelSelector": "is left out: KubeFleet selects objects of overrides by name alone; Shipper selects by labels, too: write it into " +
		"resources",
}

// reportElsewhere reports placements of the input whose Applications are in another namespace than a ResourceOverride: it bears on those of
// its own.
func (f *fleetOverride) reportElsewhere(d document, with settings, report *report) {
	if d.GetKind() != namespacedOverride || d.GetNamespace() == "" {
		return
	}
	for _, other := range with.input {
		if converterOf(other) == nil || other.GetKind() != clusterPlacement {
			continue
		}
		of, err := specOf[placementSpec](other)
		if err != nil {
			continue // it fails by itself
		}
		namespace := of.Spec.namespace(other, with)
		named := f.Placement != nil && f.Placement.Name != ""
		if namespace == d.GetNamespace() || named && f.Placement.Name != other.GetName() || !named && !of.Spec.mayPlace(d.GetNamespace()) {
			continue
		}
		report.add("metadata.namespace", "%s becomes the Application %s/%s, and a ResourceOverride bears on Applications of its own namespace: "+
			"place the namespace %s by an Application in it, or write the ResourceOverride into the namespace %s, where it bears on the objects "+
			"of these names in every namespace", other.title(), namespace, other.GetName(), d.GetNamespace(), shipper.GlobalBlocksNamespace)
	}
}

// mayPlace reports whether a placement may place objects of a namespace: it selects the Namespace by name, or any by labels.
func (p *placementSpec) mayPlace(namespace string) bool {
	return slices.ContainsFunc(p.ResourceSelectors, func(s resourceSelector) bool {
		return s.isNamespace() && (s.Name == "" || s.Name == namespace)
	})
}

// rules converts the rules. One without a selector of clusters has no cluster for KubeFleet, and every cluster for Shipper.
func (f *fleetOverride) rules(d document, into *shipper.ResourceOverrideSpec, report *report) error {
	for i, from := range f.Policy.Rules {
		at := field.NewPath("spec", "policy", "overrideRules").Index(i)
		of, err := oneOfFleet(d, at.Child("overrideType").String(), cmp.Or(from.Type, "JSONPatch"), overrideTypes)
		switch {
		case err != nil:
			return err
		case from.ClusterSelector == nil:
			report.add(at.String(), "is left out: without a clusterSelector it has no cluster")
			continue
		case byProperties(from.ClusterSelector.Terms):
			report.add(at.Child("clusterSelector").String(), "is left out with its rule: Shipper selects clusters of a rule by names and labels")
			continue
		case of == deletes && len(from.Patches) > 0:
			report.add(at.Child("jsonPatchOverrides").String(), "is left out: the rule deletes the objects")
		}
		into.Rules = append(into.Rules, from.convert(of))
	}
	return nil
}

// convert makes a rule of one that has clusters. A term without labels is one of every cluster.
func (r *fleetRule) convert(of overrideType) shipper.OverrideRule {
	out := shipper.OverrideRule{Delete: of == deletes}
	for _, term := range r.ClusterSelector.Terms {
		out.ClusterTerms = append(out.ClusterTerms, shipper.OverrideClusterTerm{
			LabelSelector: cmp.Or(term.LabelSelector, &metav1.LabelSelector{}),
		})
	}
	if out.Delete {
		return out
	}
	for _, operation := range r.Patches {
		if value, there := operation["value"]; there {
			operation["value"] = renamed(value)
		}
		out.Patch = append(out.Patch, operation)
	}
	return out
}

// byProperties reports whether a term selects, or sorts, by properties.
func byProperties(terms []clusterTerm) bool {
	return slices.ContainsFunc(terms, func(t clusterTerm) bool {
		return len(t.PropertySelector.MatchExpressions) > 0 || t.PropertySorter != nil || t.MetricSorter != nil
	})
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
