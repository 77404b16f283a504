// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	// maxRecorded bounds the rights of a record: one write may need that many (manifests/policy/resources.yaml).
	maxRecorded = 12
	// everything is any group or resource, in RBAC and in a record.
	everything = "*"
	// nothing is a record without rights. It is not the same as no record.
	nothing = "none"
)

// PlaceEverything is the right to place everything. It is needed while it is unknown which rights are enough.
var PlaceEverything = Action{Verb: Place, Group: everything, Resource: everything}

// recordable is a name that a record can hold. Names of RBAC objects may have commas and spaces.
var recordable = regexp.MustCompile(`^[-a-zA-Z0-9.:_]+$`)

// FormatRecord writes rights to place for shipper.ContentRightsAnnotation. A name that a list cannot hold needs the right
// to all of its resource. More rights than one write may need become the right to place everything.
func FormatRecord(needs []Action) string {
	var out []string
	seen := map[string]bool{}
	for _, need := range needs {
		if !recordable.MatchString(need.Name) {
			need.Name = ""
		}
		text := schema.GroupResource{Group: need.Group, Resource: need.Resource}.String() + "/" + need.Name
		if !seen[text] {
			seen[text] = true
			out = append(out, text)
		}
	}
	if len(out) > maxRecorded {
		return FormatRecord([]Action{PlaceEverything})
	}
	if len(out) == 0 {
		return nothing
	}
	return strings.Join(out, ",")
}

// ParseRecord reads what FormatRecord wrote. Text that is not of this form needs the right to place everything.
func ParseRecord(text string) []Action {
	if text == "" || text == nothing {
		return nil
	}
	var out []Action
	for one := range strings.SplitSeq(text, ",") {
		object, name, ok := strings.Cut(one, "/")
		if !ok || object == "" || strings.Contains(name, "/") {
			return []Action{PlaceEverything}
		}
		what := schema.ParseGroupResource(object)
		out = append(out, Action{Verb: Place, Group: what.Group, Resource: what.Resource, Name: name})
	}
	return out
}

// HoldsEnvelopes reports whether the content of resources may have Envelopes: it needs a record then.
func HoldsEnvelopes(of *shipper.Resources) bool {
	return of != nil && slices.ContainsFunc(of.Select, func(s shipper.ResourceSelector) bool {
		return s.Group == shipper.GroupName && s.Kind == "Envelope" ||
			s.Group == "" && s.Kind == "Namespace" && s.Content != shipper.ContentNone
	})
}

// Recorded reads the record of an Application or Release that has resources and these annotations. What an earlier version has placed may
// have no record: until the reconciler has written it, content that may have Envelopes needs the right to place everything.
func Recorded(of *shipper.Resources, annotations map[string]string) []Action {
	text, ok := annotations[shipper.ContentRightsAnnotation]
	_, released := annotations[shipper.AppHighestObservedGenerationAnnotation]
	_, isRelease := annotations[shipper.ReleaseGenerationAnnotation]
	if !ok && (released || isRelease) && HoldsEnvelopes(of) {
		return []Action{PlaceEverything}
	}
	return ParseRecord(text)
}
