// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// The bounds of numbers and of lists, as the CRDs have them, so that they hold also where a file is validated without an API server.
const (
	maxCount      = 1000
	maxWeight     = 100
	maxProperties = 50
	// maxRequirements and maxValues bound a label selector and each of its expressions.
	maxRequirements, maxValues = 20, 100
)

const (
	notAQuantity = "not a quantity such as 5, 500m or 2Gi"
	notAVersion  = "not a version such as 1.33 or 1.33.4"
)

var (
	placementTypes = []shipper.PlacementType{shipper.PickAll, shipper.PickFixed, shipper.PickN}
	operators      = []shipper.PropertyOperator{
		shipper.PropertyEq, shipper.PropertyGe, shipper.PropertyGt, shipper.PropertyLe, shipper.PropertyLt, shipper.PropertyNe,
	}
	orders        = []shipper.SortOrder{shipper.SortAscending, shipper.SortDescending}
	unsatisfiable = []shipper.UnsatisfiableConstraintAction{shipper.DoNotSchedule, shipper.ScheduleAnyway}

	// propertyName is what keys of ConfigMaps and names of resources are made of.
	propertyName = regexp.MustCompile(`^[-._/a-zA-Z0-9]{1,253}$`)
)

// ValidateChoice returns what is wrong with requirements at that path that do not have exactly one of regions and placement.
func ValidateChoice(r shipper.ClusterRequirements, path *field.Path) field.ErrorList {
	switch {
	case len(r.Regions) == 0 && r.Placement == nil:
		return field.ErrorList{field.Required(path.Child("regions"), "name at least one region to run in, or give a placement")}
	case len(r.Regions) > 0 && r.Placement != nil:
		return field.ErrorList{field.Forbidden(path.Child("placement"), "give regions or a placement, not both")}
	}
	return nil
}

// Validate returns what is wrong with a placement at that path; nil for none. It repeats what the CRD refuses, with hints.
func Validate(p *shipper.Placement, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	var errs field.ErrorList
	if p.Type != "" && !slices.Contains(placementTypes, p.Type) {
		errs = append(errs, field.NotSupported(path.Child("type"), p.Type, placementTypes))
	}
	errs = append(errs, validateCount(p, path.Child("count"))...)
	errs = append(errs, validateClusters(p, path.Child("clusters"))...)
	if p.Affinity != nil {
		errs = append(errs, validateAffinity(p, path.Child("affinity"))...)
	}
	spread := path.Child("topologySpreadConstraints")
	if len(p.TopologySpreadConstraints) > 0 && p.Type != shipper.PickN {
		errs = append(errs, field.Forbidden(spread, "only for PickN: every other type chooses all clusters that fit"))
	} else {
		errs = append(errs, validateSpread(p.TopologySpreadConstraints, spread)...)
	}
	tolerations := path.Child("tolerations")
	if len(p.Tolerations) > 0 && p.Type == shipper.PickFixed {
		return append(errs, field.Forbidden(tolerations, "not with PickFixed, which ignores taints: leave it out"))
	}
	for i := range p.Tolerations {
		errs = append(errs, validateToleration(&p.Tolerations[i], tolerations.Index(i))...)
	}
	return errs
}

func validateCount(p *shipper.Placement, path *field.Path) field.ErrorList {
	switch {
	case p.Type == shipper.PickN && p.Count == nil:
		return field.ErrorList{field.Required(path, "needed for PickN: how many clusters")}
	case p.Type != shipper.PickN && p.Count != nil:
		return field.ErrorList{field.Forbidden(path, "only for PickN")}
	case p.Count != nil && (*p.Count < 1 || *p.Count > maxCount):
		return field.ErrorList{field.Invalid(path, *p.Count, fmt.Sprintf("from 1 to %d", maxCount))}
	default:
		return nil
	}
}

func validateClusters(p *shipper.Placement, path *field.Path) field.ErrorList {
	switch {
	case p.Type == shipper.PickFixed && len(p.Clusters) == 0:
		return field.ErrorList{field.Required(path, "needed for PickFixed: the names of the clusters")}
	case p.Type != shipper.PickFixed && len(p.Clusters) > 0:
		return field.ErrorList{field.Forbidden(path, "only for PickFixed; others choose by names in affinity.required")}
	default:
		return validateNames(p.Clusters, path)
	}
}

// validateNames refuses names that no Cluster can have, and names that occur twice.
func validateNames(names []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, name := range names {
		if seen[name] {
			errs = append(errs, field.Duplicate(path.Index(i), name))
			continue
		}
		seen[name] = true
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			errs = append(errs, field.Invalid(path.Index(i), name, "no Cluster can have this name: "+strings.Join(problems, "; ")))
		}
	}
	return errs
}

func validateAffinity(p *shipper.Placement, path *field.Path) field.ErrorList {
	if p.Type == shipper.PickFixed {
		return field.ErrorList{field.Forbidden(path, "not with PickFixed, which names its clusters: leave it out")}
	}
	var errs field.ErrorList
	for i := range p.Affinity.Required {
		if t := &p.Affinity.Required[i]; len(t.Names)+len(t.Properties) == 0 && t.LabelSelector == nil {
			errs = append(errs, field.Required(path.Child("required").Index(i),
				"an empty term matches every cluster: give names, a labelSelector or properties, or leave required out"))
		}
		errs = append(errs, validateTerm(&p.Affinity.Required[i], path.Child("required").Index(i))...)
	}
	if len(p.Affinity.Preferred) > 0 && p.Type != shipper.PickN {
		return append(errs, field.Forbidden(path.Child("preferred"), "only for PickN: PickAll chooses all clusters that fit"))
	}
	for i := range p.Affinity.Preferred {
		term, at := &p.Affinity.Preferred[i], path.Child("preferred").Index(i)
		if term.Weight < -maxWeight || term.Weight > maxWeight {
			errs = append(errs, field.Invalid(at.Child("weight"), term.Weight, fmt.Sprintf("from %d to %d", -maxWeight, maxWeight)))
		}
		errs = append(errs, validateTerm(&term.ClusterTerm, at)...)
		if sort := term.Sort; sort != nil {
			errs = append(errs, validatePropertyName(sort.Property, at.Child("sort", "property"))...)
			if !slices.Contains(orders, sort.Order) {
				errs = append(errs, field.NotSupported(at.Child("sort", "order"), sort.Order, orders))
			}
		}
	}
	return errs
}

func validateTerm(t *shipper.ClusterTerm, path *field.Path) field.ErrorList {
	errs := validateNames(t.Names, path.Child("names"))
	errs = append(errs, ValidateSelector(t.LabelSelector, path.Child("labelSelector"))...)
	for i := range t.Properties {
		p, at := &t.Properties[i], path.Child("properties").Index(i)
		errs = append(errs, validatePropertyName(p.Name, at.Child("name"))...)
		if !slices.Contains(operators, p.Operator) {
			errs = append(errs, field.NotSupported(at.Child("operator"), p.Operator, operators))
		}
		errs = append(errs, validateValue(p.Name, p.Value, at.Child("value"))...)
	}
	return errs
}

// ValidateSelector validates a selector of clusters as Kubernetes does, with bounds, and with a hint for the operator that KubeFleet's
// documentation names.
func ValidateSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	// Each is compared with each cluster, at each decision.
	if n := len(s.MatchLabels) + len(s.MatchExpressions); n > maxRequirements {
		return field.ErrorList{field.TooMany(path, n, maxRequirements)}
	}
	for i := range s.MatchExpressions {
		if n := len(s.MatchExpressions[i].Values); n > maxValues {
			return field.ErrorList{field.TooMany(path.Child("matchExpressions").Index(i).Child("values"), n, maxValues)}
		}
	}
	errs := metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path)
	for i, e := range s.MatchExpressions {
		if e.Operator != "NotExists" {
			continue
		}
		at := path.Child("matchExpressions").Index(i).Child("operator")
		for _, err := range errs {
			if err.Field == at.String() {
				err.Detail = "use DoesNotExist"
			}
		}
	}
	return errs
}

// PropertyProblem says why a property of a cluster cannot be compared; empty when it can. It takes a bounded time, whatever the value.
func PropertyProblem(name, value string) string {
	path := field.NewPath("properties")
	for _, err := range append(validatePropertyName(name, path), validateValue(name, value, path)...) {
		return err.Detail
	}
	return ""
}

func validatePropertyName(name string, path *field.Path) field.ErrorList {
	if propertyName.MatchString(name) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, name, "1 to 253 letters, digits, '-', '_', '.' and '/', such as cpu.allocatable")}
}

// validateValue refuses a value of this property that cannot be compared.
func validateValue(name, text string, path *field.Path) field.ErrorList {
	if parseValue(name, text).state == known && (name != propertyKubernetes || !strings.ContainsAny(text, "-+")) {
		return nil
	}
	if name == propertyKubernetes {
		return field.ErrorList{field.Invalid(path, text, notAVersion)}
	}
	return field.ErrorList{field.Invalid(path, text, notAQuantity)}
}

func validateSpread(constraints []shipper.TopologySpreadConstraint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := pairs{}
	for i, c := range constraints {
		at := path.Index(i)
		if c.MaxSkew < 0 || c.MaxSkew > maxCount {
			errs = append(errs, field.Invalid(at.Child("maxSkew"), c.MaxSkew, fmt.Sprintf("from 1 to %d", maxCount)))
		}
		errs = append(errs, validateLabelKey(c.TopologyKey, at.Child("topologyKey"))...)
		if c.WhenUnsatisfiable != "" && !slices.Contains(unsatisfiable, c.WhenUnsatisfiable) {
			errs = append(errs, field.NotSupported(at.Child("whenUnsatisfiable"), c.WhenUnsatisfiable, unsatisfiable))
		}
		errs = append(errs, seen.add(c.TopologyKey, string(cmp.Or(c.WhenUnsatisfiable, shipper.DoNotSchedule)), at)...)
	}
	return errs
}

// pairs are those of two fields by which the entries of a list differ.
type pairs map[[2]string]bool

// add refuses a pair that an entry before has.
func (p pairs) add(first, second string, at *field.Path) field.ErrorList {
	pair := [2]string{first, second}
	if p[pair] {
		return field.ErrorList{field.Duplicate(at, first+", "+second)}
	}
	p[pair] = true
	return nil
}

func validateLabelKey(key string, path *field.Path) field.ErrorList {
	if key == "" {
		return field.ErrorList{field.Required(path, "the key of a label")}
	}
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		return field.ErrorList{field.Invalid(path, key, strings.Join(problems, "; "))}
	}
	return nil
}

func validateLabelValue(value string, path *field.Path) field.ErrorList {
	if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
		return field.ErrorList{field.Invalid(path, value, strings.Join(problems, "; "))}
	}
	return nil
}

func validateToleration(t *shipper.ClusterToleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case t.Operator != "" && t.Operator != shipper.TolerationEqual && t.Operator != shipper.TolerationExists:
		errs = append(errs, field.NotSupported(path.Child("operator"), t.Operator,
			[]shipper.TolerationOperator{shipper.TolerationEqual, shipper.TolerationExists}))
	case t.Key == "" && t.Operator != shipper.TolerationExists:
		errs = append(errs, field.Invalid(path.Child("operator"), t.Operator, "an empty key goes with Exists"))
	}
	if t.Operator == shipper.TolerationExists && t.Value != "" {
		errs = append(errs, field.Invalid(path.Child("value"), t.Value, "leave value out: Exists tolerates every value"))
	}
	if t.Key != "" {
		errs = append(errs, validateLabelKey(t.Key, path.Child("key"))...)
	}
	errs = append(errs, validateLabelValue(t.Value, path.Child("value"))...)
	return append(errs, validateEffect(t.Effect, path.Child("effect"))...)
}

func validateEffect(effect shipper.ClusterTaintEffect, path *field.Path) field.ErrorList {
	if effect == "" || effect == shipper.TaintNoSchedule {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, effect, []shipper.ClusterTaintEffect{shipper.TaintNoSchedule})}
}

// ValidateTaints returns what is wrong with the taints of a Cluster at that path; nil for none.
func ValidateTaints(taints []shipper.ClusterTaint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := pairs{}
	for i, taint := range taints {
		at := path.Index(i)
		errs = append(errs, validateLabelKey(taint.Key, at.Child("key"))...)
		errs = append(errs, validateLabelValue(taint.Value, at.Child("value"))...)
		errs = append(errs, validateEffect(taint.Effect, at.Child("effect"))...)
		errs = append(errs, seen.add(taint.Key, string(effectOf(taint)), at)...)
	}
	return errs
}

// ValidateProperties returns what is wrong with the properties of a Cluster at that path; nil for none.
func ValidateProperties(properties map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(properties) > maxProperties {
		errs = append(errs, field.TooMany(path, len(properties), maxProperties))
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		errs = append(errs, validatePropertyName(name, path.Key(name))...)
		errs = append(errs, validateValue(name, properties[name], path.Key(name))...)
	}
	return errs
}
