// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// The oldest versions of Kubernetes that Shipper works with.
const (
	leastManagement  = "1.30"
	leastApplication = "1.27"
)

// tooOld reports whether an API server is older than Shipper needs.
func tooOld(found, least string) []Finding {
	is, err := version.ParseGeneric(found)
	if err != nil {
		return []Finding{{
			Level: Warning, What: fmt.Sprintf("its API server says to be %q, which is no version", found),
			Why: "it may be older than " + least, Do: "look at kubectl version",
		}}
	}
	if is.AtLeast(version.MustParseGeneric(least)) {
		return nil
	}
	return []Finding{{
		Level: Broken, What: fmt.Sprintf("its API server is %s, older than %s", found, least),
		Why: "Shipper needs Kubernetes " + leastManagement + " or later in the management cluster and " + leastApplication +
			" or later in application clusters: what it relies on is not served before",
		Do: "upgrade the cluster to Kubernetes " + least + " or later",
	}}
}
