// SPDX-License-Identifier: Apache-2.0

package chart

import "strings"

// ResourcePolicyAnnotation with the value `keep` on an object makes Helm, and Shipper, leave it where it is when its release
// goes. Helm's own name for it is in a package that brings kubectl along.
const ResourcePolicyAnnotation = "helm.sh/resource-policy"

// Keeps reports whether an object's annotations say that it is to outlive its release. Helm reads them as leniently.
func Keeps(annotations map[string]string) bool {
	return strings.ToLower(strings.TrimSpace(annotations[ResourcePolicyAnnotation])) == "keep"
}
