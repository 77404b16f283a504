// SPDX-License-Identifier: Apache-2.0

package override

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// maxRequirements bounds a label selector, which is compared with each object or cluster.
const maxRequirements = 20

// Validate returns what is wrong with a ResourceOverride beyond the shape that its CRD and RFC 6902 require. global is true in the global
// namespace.
func Validate(spec *shipper.ResourceOverrideSpec, path *field.Path, global bool) field.ErrorList {
	var errs field.ErrorList
	if text, err := json.Marshal(spec); err != nil || len(text) > MaxBytes {
		errs = append(errs, field.TooLong(path, "", MaxBytes))
	}
	if spec.Mandatory && !global {
		errs = append(errs, field.Forbidden(path.Child("mandatory"), "only in the global namespace: leave it out"))
	}
	if spec.Applications != nil && len(spec.ApplicationNames) > 0 {
		errs = append(errs, field.Forbidden(path.Child("applications"), "give applicationNames or applications, not both"))
	}
	errs = append(errs, validateSelector(spec.Applications, path.Child("applications"))...)
	if n, limit := operations(spec.Rules), most(spec.Mandatory).Operations; n > limit {
		errs = append(errs, field.Invalid(path.Child("rules"), "", fmt.Sprintf("the patches have %d operations together, more than the %d that "+
			"a Release may keep: replace a whole map or list by one operation", n, limit)))
	}
	if n := len(spec.Resources) * len(spec.Rules); n > MaxPairs {
		errs = append(errs, field.Invalid(path.Child("rules"), "", fmt.Sprintf("%d resources times %d rules are %d pairs, more than %d: write "+
			"fewer rules, select several objects by their labels, or write several ResourceOverrides", len(spec.Resources), len(spec.Rules), n,
			MaxPairs)))
	}
	deletes := false
	for i := range spec.Rules {
		deletes = deletes || spec.Rules[i].Delete
		errs = append(errs, validateRule(&spec.Rules[i], path.Child("rules").Index(i))...)
	}
	for i := range spec.Resources {
		errs = append(errs, validateResource(&spec.Resources[i], path.Child("resources").Index(i), global, deletes)...)
	}
	return errs
}

func validateResource(r *shipper.OverriddenResource, path *field.Path, global, deletes bool) field.ErrorList {
	errs := validateSelector(r.LabelSelector, path.Child("labelSelector"))
	if r.Name != "" && r.LabelSelector != nil {
		errs = append(errs, field.Forbidden(path.Child("labelSelector"), "give a name or a labelSelector, not both"))
	}
	if err := checkVariables(r.Name, true); err != nil {
		errs = append(errs, field.Invalid(path.Child("name"), r.Name, err.Error()))
	}
	switch {
	case r.Group == shipper.GroupName:
		errs = append(errs, field.Forbidden(path.Child("group"), "objects of Shipper itself cannot be overridden"))
	case r.Group == rbacGroup && !global:
		errs = append(errs, field.Forbidden(path.Child("group"), "only a ResourceOverride in the global namespace may change rights"))
	case deletes && isContainer(r):
		errs = append(errs, field.Forbidden(path.Child("kind"), fmt.Sprintf(
			"a %s takes what it contains with it: place it with an Application of its own, and choose the clusters there", r.Kind)))
	}
	return errs
}

// isContainer reports whether the deletion of an object deletes others.
func isContainer(r *shipper.OverriddenResource) bool {
	return r.Group == "" && r.Kind == "Namespace" || r.Group == "apiextensions.k8s.io" && r.Kind == "CustomResourceDefinition"
}

func validateRule(rule *shipper.OverrideRule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if rule.Delete == (len(rule.Patch) > 0) {
		errs = append(errs, field.Invalid(path.Child("patch"), "", "give a patch or delete: true, exactly one of the two"))
	}
	for i := range rule.ClusterTerms {
		term, at := &rule.ClusterTerms[i], path.Child("clusterTerms").Index(i)
		if len(term.Names) == 0 && term.LabelSelector == nil {
			errs = append(errs, field.Required(at, "give names or a labelSelector; without clusterTerms the rule is for all clusters"))
		}
		errs = append(errs, validateSelector(term.LabelSelector, at.Child("labelSelector"))...)
	}
	for i, operation := range rule.Patch {
		errs = append(errs, validateOperation(operation, path.Child("patch").Index(i))...)
	}
	return errs
}

// validateOperation refuses what an operation must not change. The result of a patch is compared, too: see Kept.
func validateOperation(operation shipper.PatchOperation, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	op, _ := operation["op"].(string)
	if to, ok := operation["path"].(string); ok && op != "test" {
		if why := whyNotChanged(to); why != "" {
			errs = append(errs, field.Invalid(path.Child("path"), to, why))
		}
	}
	if from, ok := operation["from"].(string); ok && op == "move" {
		if why := whyNotChanged(from); why != "" {
			errs = append(errs, field.Invalid(path.Child("from"), from, why))
		}
	}
	value, there := operation["value"]
	if there && op == "remove" {
		errs = append(errs, field.Forbidden(path.Child("value"), "remove has no value: leave it out"))
	}
	if err := checkDeep(value); err != nil {
		errs = append(errs, field.Invalid(path.Child("value"), "", err.Error()))
	}
	return errs
}

// checkDeep is checkVariables for all texts of a JSON value.
func checkDeep(value any) error {
	switch value := value.(type) {
	case string:
		return checkVariables(value, false)
	case map[string]any:
		for _, item := range value {
			if err := checkDeep(item); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range value {
			if err := checkDeep(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// whyNotChanged is why a patch must not change what is at a JSON pointer; empty if it may.
func whyNotChanged(pointer string) string {
	if pointer == "" {
		return "a patch changes fields, not the whole object: give a path such as /spec/replicas"
	}
	segments := strings.Split(pointer, "/")[1:]
	for i := range segments {
		if segments[i] == "" {
			return "the path has an empty segment: write one slash between two fields"
		}
		segments[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(segments[i])
	}
	switch first := segments[0]; {
	case first == "apiVersion" || first == "kind" || first == "status":
		return first + " decides what the object is, or is not the author's: only labels, annotations and content can be changed"
	case first == "metadata" && (len(segments) == 1 || segments[1] != "labels" && segments[1] != "annotations"):
		return "of metadata only /metadata/labels and /metadata/annotations can be changed"
	case first == "metadata" && len(segments) > 2 && IsKept(segments[2]):
		return fmt.Sprintf("%s is Shipper's or Helm's: it decides which objects belong together", segments[2])
	}
	return ""
}

// IsKept reports whether no patch may add, change or remove a key of an object, such as that of a label.
func IsKept(key string) bool {
	return shipper.ReservedLabel(key) || shipper.ReservedAnnotation(key) || strings.HasPrefix(key, "helm.sh/hook") ||
		key == "helm.sh/resource-policy"
}

// Kept is what a patch of an object must leave as it is. It holds whatever the path, so also where a field is moved, or replaced with what
// contains it.
func Kept(object map[string]any) map[string][]any {
	out := map[string][]any{}
	for _, key := range []string{"apiVersion", "kind", "status"} {
		if value, there := object[key]; there {
			out[key] = []any{value}
		}
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		for key, value := range metadata {
			if key != "labels" && key != "annotations" {
				out["metadata."+key] = []any{value}
			}
		}
	}
	addKept(out, "", object)
	return out
}

// addKept adds the keys that are kept, in the order of lists, whose items a patch may move.
func addKept(out map[string][]any, path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			at := path + "/" + key
			if IsKept(key) {
				out[at] = append(out[at], item)
			}
			addKept(out, at, item)
		}
	case []any:
		for _, item := range value {
			addKept(out, path+"/-", item)
		}
	}
}

func validateSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	if n := len(s.MatchLabels) + len(s.MatchExpressions); n > maxRequirements {
		return field.ErrorList{field.TooMany(path, n, maxRequirements)}
	}
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path)
}
