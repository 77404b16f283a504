// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
)

// ResourcePolicyAnnotation with the value `keep` on an object makes Helm, and Shipper, keep the object when its release is
// deleted. Helm's own constant is in a package that imports kubectl.
const ResourcePolicyAnnotation = "helm.sh/resource-policy"

// Keeps reports whether an object's annotations make it outlive its release. It accepts the same spellings as Helm.
func Keeps(annotations map[string]string) bool {
	return strings.ToLower(strings.TrimSpace(annotations[ResourcePolicyAnnotation])) == "keep"
}
