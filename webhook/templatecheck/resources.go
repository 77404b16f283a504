// SPDX-License-Identifier: Apache-2.0

package templatecheck

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	// MaxSelectors bounds the selectors of resources.
	MaxSelectors = 100
	// MaxReadyRules bounds the rules that say when objects are ready.
	MaxReadyRules = 20
)

// oneOfTwo is the error of a template with a chart and resources, or with neither.
const oneOfTwo = "name a chart or resources: exactly one of the two"

// validateContent validates what a template is of. done is true where no chart is left to validate.
func validateContent(env *shipper.ReleaseEnvironment, path *field.Path) (errs field.ErrorList, done bool) {
	hasChart := env.Chart != (shipper.Chart{})
	switch {
	case env.Resources == nil && hasChart:
		return validateNoResources(env, path), false
	case env.Resources == nil:
		return field.ErrorList{field.Required(path.Child("chart"), oneOfTwo)}, true
	case hasChart:
		return field.ErrorList{field.Forbidden(path.Child("resources"), oneOfTwo)}, true
	}
	errs = validateNoValues(env, path)
	errs = append(errs, validateResources(env.Resources, path.Child("resources"))...)
	errs = append(errs, validateApply(env.Apply, path.Child("apply"))...)
	errs = append(errs, validateRequirements(env.ClusterRequirements, path.Child("clusterRequirements"))...)
	return append(errs, validateRollout(env.Strategy, path.Child("strategy"))...), true
}

// validateNoResources returns errors for fields that a template with a chart does not have.
func validateNoResources(env *shipper.ReleaseEnvironment, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if env.Apply != nil {
		errs = append(errs, field.Forbidden(path.Child("apply", "type"), "only for resources"))
	}
	if env.ResourcesDigest != "" {
		errs = append(errs, field.Forbidden(path.Child("resourcesDigest"), "only for resources"))
	}
	return append(errs, validateNoRolling(env.Strategy, path.Child("strategy"))...)
}

// validateNoRolling returns errors for fields of a strategy that only resources have.
func validateNoRolling(s *shipper.RolloutStrategy, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	if s.Rolling != nil {
		errs = append(errs, field.Forbidden(path.Child("rolling"), "only for resources: a chart has steps"))
	}
	if s.UnavailablePeriod != "" {
		errs = append(errs, field.Forbidden(path.Child("unavailablePeriod"), "only for resources: a chart has readinessGates and checks"))
	}
	return errs
}

// validateNoValues returns errors for values, which only a chart has.
func validateNoValues(env *shipper.ReleaseEnvironment, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, one := range []struct {
		name  string
		given bool
	}{
		{"values", env.Values != nil}, {"valuesPerRegion", len(env.ValuesPerRegion) > 0},
		{"valuesPerCluster", len(env.ValuesPerCluster) > 0}, {"valuesFrom", len(env.ValuesFrom) > 0},
		{"valuesDigests", len(env.ValuesDigests) > 0},
	} {
		if one.given {
			errs = append(errs, field.Forbidden(path.Child(one.name), "only for a chart: resources are placed as they are"))
		}
	}
	return errs
}

func validateResources(r *shipper.Resources, path *field.Path) field.ErrorList {
	at := path.Child("select")
	switch {
	case len(r.Select) == 0:
		return field.ErrorList{field.Required(at, "select at least one object")}
	case len(r.Select) > MaxSelectors:
		return field.ErrorList{field.TooMany(at, len(r.Select), MaxSelectors)}
	}
	var errs field.ErrorList
	for i := range r.Select {
		errs = append(errs, validateSelector(&r.Select[i], at.Index(i))...)
	}
	errs = append(errs, oneOf(path.Child("follow"), r.Follow, shipper.FollowAlways, shipper.FollowOnRefresh)...)
	errs = append(errs, oneOf(path.Child("removal"), r.Removal, shipper.RemovalWhenEmpty, shipper.RemovalAll, shipper.RemovalNone)...)
	ready := path.Child("ready")
	if len(r.Ready) > MaxReadyRules {
		return append(errs, field.TooMany(ready, len(r.Ready), MaxReadyRules))
	}
	for i, rule := range r.Ready {
		switch {
		case rule.Kind == "":
			errs = append(errs, field.Required(ready.Index(i).Child("kind"), "name the kind of the objects"))
		case rule.Group == "" && rule.Kind == "Secret":
			errs = append(errs, field.Forbidden(ready.Index(i).Child("kind"),
				"Secrets are not judged by rules: an error of the expression could show their values in a status"))
		}
		if strings.TrimSpace(rule.Expression) == "" {
			errs = append(errs, field.Required(ready.Index(i).Child("expression"), "write CEL over object, such as object.status.ready == true"))
		}
	}
	return errs
}

func validateSelector(s *shipper.ResourceSelector, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	named := func(child, value string, wrong []string) {
		if value != "" && len(wrong) > 0 {
			errs = append(errs, field.Invalid(path.Child(child), value, strings.Join(wrong, "; ")))
		}
	}
	if group, version, both := strings.Cut(s.Group, "/"); both {
		errs = append(errs, field.Invalid(path.Child("group"), s.Group, fmt.Sprintf("a group has no version in it: write group: %s and, "+
			"only if you need it, version: %s", group, version)))
	} else {
		named("group", s.Group, validation.IsDNS1123Subdomain(s.Group))
	}
	named("version", s.Version, validation.IsDNS1035Label(s.Version))
	named("namespace", s.Namespace, validation.IsDNS1123Label(s.Namespace))
	named("name", s.Name, content.IsPathSegmentName(s.Name))
	switch {
	case s.Kind == "":
		errs = append(errs, field.Required(path.Child("kind"), "name the kind, such as ConfigMap"))
	case !kindForm.MatchString(s.Kind):
		errs = append(errs, field.Invalid(path.Child("kind"), s.Kind, "must be a kind such as ConfigMap, with a capital and without an s: "+
			"group and version are fields beside it"))
	}
	if s.LabelSelector != nil {
		at := path.Child("labelSelector")
		if s.Name != "" {
			errs = append(errs, field.Forbidden(at, "give a name or a labelSelector, not both"))
		}
		errs = append(errs, metav1validation.ValidateLabelSelector(s.LabelSelector, metav1validation.LabelSelectorValidationOptions{}, at)...)
	}
	isNamespace := s.Group == "" && s.Kind == "Namespace"
	isSecret := s.Group == "" && s.Kind == "Secret"
	// A forgotten field must not select every Namespace or Secret.
	if s.Name == "" && s.LabelSelector == nil && (isNamespace || isSecret) {
		errs = append(errs, field.Required(path.Child("labelSelector"), fmt.Sprintf(
			"name one %s in name, or write labelSelector: {} for all", s.Kind)))
	}
	errs = append(errs, oneOf(path.Child("content"), s.Content, shipper.ContentAll, shipper.ContentNone)...)
	if s.Content != "" && !isNamespace {
		errs = append(errs, field.Forbidden(path.Child("content"), "only for Namespaces"))
	}
	if s.Namespace != "" && isNamespace {
		errs = append(errs, field.Forbidden(path.Child("namespace"), "a Namespace is in no namespace: give its name in name"))
	}
	return errs
}

// kindForm is the format of kinds.
var kindForm = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

func validateApply(a *shipper.Apply, path *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	errs := oneOf(path.Child("type"), a.Type, shipper.ApplyServerSide, shipper.ApplyClientSide, shipper.ApplyReportDiff)
	errs = append(errs, oneOf(path.Child("comparison"), a.Comparison, shipper.ComparisonManaged, shipper.ComparisonFull)...)
	errs = append(errs, oneOf(path.Child("takeOver"), a.TakeOver,
		shipper.TakeOverNever, shipper.TakeOverIfNoDiff, shipper.TakeOverAlways)...)
	if a.ForceConflicts != nil && a.Type != "" && a.Type != shipper.ApplyServerSide {
		errs = append(errs, field.Forbidden(path.Child("forceConflicts"),
			fmt.Sprintf("only with type ServerSide: %s has no conflicts of field managers", a.Type)))
	}
	return errs
}

// oneOf validates an enumeration that may be absent.
func oneOf[T ~string](path *field.Path, value T, known ...T) field.ErrorList {
	if value == "" {
		return nil
	}
	for _, k := range known {
		if value == k {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, value, known)}
}
