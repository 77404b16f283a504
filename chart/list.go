// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// IsEmptyList reports whether an object is a list without items, which kubectl and Helm apply without a word. Templates render one when a
// loop finds nothing. The items of a list are null or missing then, or none; a kind whose name ends with List may have other fields.
func IsEmptyList(o *unstructured.Unstructured) bool {
	value, found := o.Object["items"]
	items, isList := value.([]any)
	switch {
	case !strings.HasSuffix(o.GetKind(), "List") || len(items) > 0 || value != nil && !isList:
		return false
	case o.GetAPIVersion() == "v1" && o.GetKind() == "List":
		return true
	}
	return found && o.GetName() == ""
}
