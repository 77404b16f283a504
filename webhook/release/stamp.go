// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

var (
	namePath        = field.NewPath("metadata", "name")
	labelsPath      = field.NewPath("metadata", "labels")
	annotationsPath = field.NewPath("metadata", "annotations")
	ownersPath      = field.NewPath("metadata", "ownerReferences")
)

// validateStamp returns errors where a new Release differs from the one that apis/rules/stamp would create for its environment:
// name, labels, counters and owner must be consistent. app is its Application by label, nil when there is none.
func validateStamp(rel *shipper.Release, app *metav1.PartialObjectMetadata) field.ErrorList {
	errs := validateOwner(rel, app)
	if got := rel.Labels[shipper.ReleaseLabel]; got != rel.Name {
		errs = append(errs, field.Invalid(labelsPath.Key(shipper.ReleaseLabel), got, "must be the Release's own name"))
	}
	if _, err := stamp.Generation(rel); err != nil {
		errs = append(errs, invalidAnnotation(rel, shipper.ReleaseGenerationAnnotation))
	}
	iteration, err := stamp.Iteration(rel)
	if err != nil {
		return append(errs, invalidAnnotation(rel, shipper.ReleaseTemplateIterationAnnotation))
	}
	hash, err := stamp.Hash(rel.Spec.Environment)
	if err != nil {
		return append(errs, field.Invalid(specPath.Child("environment"), "(environment)", err.Error()))
	}
	if got := rel.Labels[shipper.ReleaseHashLabel]; got != hash {
		errs = append(errs, field.Invalid(labelsPath.Key(shipper.ReleaseHashLabel), got,
			fmt.Sprintf("must be the hash of spec.environment: %s", hash)))
	}
	if want := fmt.Sprintf("%s-%s-%d", rel.Labels[shipper.AppLabel], hash, iteration); rel.Name != want {
		errs = append(errs, field.Invalid(namePath, rel.Name,
			fmt.Sprintf("must be <application>-<hash of spec.environment>-<iteration>: %s", want)))
	}
	return errs
}

func validateOwner(rel *shipper.Release, app *metav1.PartialObjectMetadata) field.ErrorList {
	label := labelsPath.Key(shipper.AppLabel)
	name := rel.Labels[shipper.AppLabel]
	switch {
	case name == "":
		return field.ErrorList{field.Required(label, "name the Application this is a Release of")}
	case app == nil:
		return field.ErrorList{field.NotFound(label, name)}
	case !references(rel.OwnerReferences, app):
		return field.ErrorList{field.Invalid(ownersPath, describe(rel.OwnerReferences), fmt.Sprintf(
			"must be one reference to Application %s with uid %s", app.Name, app.UID))}
	}
	return nil
}

// references reports whether refs contain app, with its UID, as owner and no other Application.
func references(refs []metav1.OwnerReference, app *metav1.PartialObjectMetadata) bool {
	found := false
	for _, ref := range refs {
		if !isApplication(ref) {
			continue
		}
		if ref.Name != app.Name || ref.UID != app.UID {
			return false
		}
		found = true
	}
	return found
}

func isApplication(ref metav1.OwnerReference) bool {
	return ref.Kind == "Application" && strings.HasPrefix(ref.APIVersion, shipper.GroupName+"/")
}

func describe(refs []metav1.OwnerReference) string {
	out := make([]string, len(refs))
	for i, ref := range refs {
		out[i] = fmt.Sprintf("%s %s (uid %s)", ref.Kind, ref.Name, ref.UID)
	}
	return strings.Join(out, ", ")
}

func invalidAnnotation(rel *shipper.Release, key string) *field.Error {
	return field.Invalid(annotationsPath.Key(key), rel.Annotations[key], "must be a decimal number from 0 on")
}
