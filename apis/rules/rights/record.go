// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// maxRecorded bounds the rights of a record: one write may need that many (manifests/policy/resources.yaml).
	maxRecorded = 12
	// everything is any group or resource, in RBAC and in a record.
	everything = "*"
)

// recordable is a name that a record can hold. Names of RBAC objects may have commas and spaces.
var recordable = regexp.MustCompile(`^[-a-zA-Z0-9.:_]+$`)

// FormatRecord writes rights to place for shipper.ContentRightsAnnotation; empty for none. A name that a list cannot hold needs the right
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
		return everything + "." + everything + "/"
	}
	return strings.Join(out, ",")
}

// ParseRecord reads what FormatRecord wrote. Text that is not of this form needs the right to place everything.
func ParseRecord(text string) []Action {
	if text == "" {
		return nil
	}
	var out []Action
	for one := range strings.SplitSeq(text, ",") {
		object, name, ok := strings.Cut(one, "/")
		if !ok || object == "" {
			return []Action{{Verb: Place, Group: everything, Resource: everything}}
		}
		what := schema.ParseGroupResource(object)
		out = append(out, Action{Verb: Place, Group: what.Group, Resource: what.Resource, Name: name})
	}
	return out
}
