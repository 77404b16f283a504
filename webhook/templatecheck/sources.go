// SPDX-License-Identifier: Apache-2.0

package templatecheck

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// MaxSources bounds the ConfigMaps and Secrets with values.
const MaxSources = 10

// ValidateSources returns the errors of references to ConfigMaps and Secrets with values.
func ValidateSources(sources []shipper.ValuesSource, path *field.Path) field.ErrorList {
	if len(sources) > MaxSources {
		return field.ErrorList{field.TooMany(path, len(sources), MaxSources)}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, source := range sources {
		wrong := validateRef(source, path.Index(i))
		if len(wrong) == 0 && seen[source.String()] {
			wrong = field.ErrorList{field.Duplicate(path.Index(i), source.String())}
		}
		errs, seen[source.String()] = append(errs, wrong...), true
	}
	return errs
}

// validateSources returns the errors of the references, and of the digests of their content.
func validateSources(env *shipper.ReleaseEnvironment, path *field.Path) field.ErrorList {
	errs := ValidateSources(env.ValuesFrom, path.Child("valuesFrom"))
	if len(errs) > 0 {
		return errs
	}
	named, digests := map[string]bool{}, path.Child("valuesDigests")
	for _, source := range env.ValuesFrom {
		named[source.String()] = true
		if env.ValuesDigests[source.String()] == "" {
			errs = append(errs, field.Required(digests.Key(source.String()), "is written by Shipper's mutating webhook, which has not read it"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env.ValuesDigests)) {
		if !named[name] {
			errs = append(errs, field.Forbidden(digests.Key(name), "is not among valuesFrom; Shipper writes this: leave it out"))
		}
	}
	return errs
}

func validateRef(source shipper.ValuesSource, path *field.Path) field.ErrorList {
	ref, at := source.SecretKeyRef, path.Child("secretKeyRef")
	if ref == nil {
		ref, at = source.ConfigMapKeyRef, path.Child("configMapKeyRef")
	}
	if ref == nil || source.SecretKeyRef != nil && source.ConfigMapKeyRef != nil {
		return field.ErrorList{field.Required(path, "name either a ConfigMap, by configMapKeyRef, or a Secret, by secretKeyRef")}
	}
	var errs field.ErrorList
	if wrong := validation.IsDNS1123Subdomain(ref.Name); len(wrong) > 0 {
		errs = append(errs, field.Invalid(at.Child("name"), ref.Name, strings.Join(wrong, "; ")))
	}
	if ref.Key != "" {
		if wrong := validation.IsConfigMapKey(ref.Key); len(wrong) > 0 {
			errs = append(errs, field.Invalid(at.Child("key"), ref.Key, strings.Join(wrong, "; ")))
		}
	}
	return errs
}
