// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/chart"
)

// Bounds of an Envelope.
const (
	// MaxManifests bounds the manifests of an Envelope.
	MaxManifests = 200
	// MaxEnvelopeBytes bounds the canonical bytes of its manifests.
	MaxEnvelopeBytes = 900 << 10
)

// Scope reports whether the objects of a kind have a namespace. It is unknown for kinds that the management cluster does not serve.
type Scope func(schema.GroupKind) (namespaced, known bool)

// Unpack is the content of an Envelope in a namespace, and what is wrong with it. A manifest without a namespace gets that of the Envelope
// if scope, which may be nil, knows that its kind has one. Manifests keep what a user wrote, but for status, UIDs and the like.
func (p Policy) Unpack(
	manifests []unstructured.Unstructured, envelopeNamespace string, scope Scope,
) ([]unstructured.Unstructured, field.ErrorList) {
	at := field.NewPath("spec", "manifests")
	if len(manifests) > MaxManifests {
		return nil, field.ErrorList{field.TooMany(at, len(manifests), MaxManifests)}
	}
	var errs field.ErrorList
	out := make([]unstructured.Unstructured, 0, len(manifests))
	first, size := map[Key]int{}, 0
	for i := range manifests {
		if chart.IsEmptyList(&manifests[i]) {
			continue
		}
		if found := checkManifest(&manifests[i], at.Index(i)); len(found) > 0 {
			errs = append(errs, found...)
			continue
		}
		o := apply(&manifests[i], serverRules)
		if err := setNamespace(o, envelopeNamespace, scope, at.Index(i)); err != nil {
			errs = append(errs, err)
			continue
		}
		if err := p.refusedManifest(o, at.Index(i)); err != nil {
			errs = append(errs, err)
			continue
		}
		text, err := Canonical(o)
		if err != nil {
			errs = append(errs, field.Invalid(at.Index(i), KeyOf(o).String(), err.Error()))
			continue
		}
		size += len(text)
		if j, twice := first[KeyOf(o)]; twice {
			errs = append(errs, field.Duplicate(at.Index(i), fmt.Sprintf("%s, as manifests[%d]", KeyOf(o), j)))
			continue
		}
		first[KeyOf(o)] = i
		out = append(out, *o)
	}
	if size > MaxEnvelopeBytes {
		errs = append(errs, field.Invalid(at, formatBytes(size), fmt.Sprintf("at most %s together: use several Envelopes",
			formatBytes(MaxEnvelopeBytes))))
	}
	return out, errs
}

// checkManifest requires what every object has. Labels and annotations of other types than texts would be lost silently.
func checkManifest(o *unstructured.Unstructured, at *field.Path) (errs field.ErrorList) {
	for _, name := range []string{"apiVersion", "kind"} {
		if value, _, err := unstructured.NestedString(o.Object, name); err != nil || value == "" {
			errs = append(errs, field.Required(at.Child(name), "each manifest is a whole object"))
		}
	}
	if gv, err := schema.ParseGroupVersion(o.GetAPIVersion()); len(errs) == 0 && (err != nil || gv.Version == "") {
		errs = append(errs, field.Invalid(at.Child("apiVersion"), o.GetAPIVersion(), "want v1, apps/v1 or the like"))
	}
	if _, isList := o.Object["items"].([]any); isList && strings.HasSuffix(o.GetKind(), "List") {
		return append(errs, field.Invalid(at.Child("kind"), o.GetKind(), "is a list: write each of its items as a manifest"))
	}
	metadata := at.Child("metadata")
	switch name, _, err := unstructured.NestedString(o.Object, "metadata", "name"); {
	case err != nil || name == "":
		errs = append(errs, field.Required(metadata.Child("name"), "each manifest has a name; generateName is not enough"))
	default:
		for _, problem := range content.IsPathSegmentName(name) {
			errs = append(errs, field.Invalid(metadata.Child("name"), name, problem))
		}
	}
	if _, _, err := unstructured.NestedString(o.Object, "metadata", "namespace"); err != nil {
		errs = append(errs, field.TypeInvalid(metadata.Child("namespace"), "", "want a text"))
	}
	for _, name := range []string{"labels", "annotations"} {
		value, _, _ := unstructured.NestedFieldNoCopy(o.Object, "metadata", name)
		if _, _, err := unstructured.NestedStringMap(o.Object, "metadata", name); value != nil && err != nil {
			errs = append(errs, field.TypeInvalid(metadata.Child(name), "", "want a map of texts: quote numbers and booleans"))
		}
	}
	return errs
}

// setNamespace gives a manifest the namespace of its Envelope if its kind has namespaces.
func setNamespace(o *unstructured.Unstructured, envelopeNamespace string, scope Scope, at *field.Path) *field.Error {
	if scope == nil {
		return nil
	}
	namespaced, known := scope(KeyOf(o).GroupKind())
	switch {
	case known && namespaced && o.GetNamespace() == "":
		o.SetNamespace(envelopeNamespace)
	case known && !namespaced && o.GetNamespace() != "":
		return field.Invalid(at.Child("metadata", "namespace"), o.GetNamespace(), plural(o.GetKind())+" have no namespace: leave it out")
	}
	return nil
}

func (p Policy) refusedManifest(o *unstructured.Unstructured, at *field.Path) *field.Error {
	gk := KeyOf(o).GroupKind()
	if IsEnvelope(gk) {
		return field.Invalid(at.Child("kind"), o.GetKind(), "an Envelope cannot contain Envelopes: write their manifests here")
	}
	if gk == secret { // Envelopes are readable with `view`, which hides Secrets
		return field.Invalid(at.Child("kind"), o.GetKind(), fmt.Sprintf("an Envelope shows its content to all who may read it: "+
			"create the Secret and select it, by {kind: Secret, name: %s}", o.GetName()))
	}
	refusal := p.Refused(o.GroupVersionKind(), o.GetNamespace(), o.GetName())
	if refusal == nil {
		if reason := OwnOfCluster(o); reason != "" {
			return field.Invalid(at, KeyOf(o).String(), "is never placed: "+reason)
		}
		return nil
	}
	switch refusal.Field {
	case "kind":
		return field.Invalid(at.Child("kind"), o.GetKind(), refusal.Reason)
	case "name":
		return field.Invalid(at.Child("metadata", "name"), o.GetName(), refusal.Reason)
	default:
		return field.Invalid(at.Child("metadata", "namespace"), o.GetNamespace(), refusal.Reason)
	}
}
