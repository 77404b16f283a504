// SPDX-License-Identifier: Apache-2.0

package rolloutblock

import (
	"fmt"
	"slices"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// unknown names the regions and clusters of a scope that no Cluster has: a block with a misspelt one stops nothing there. They are no
// errors, since a cluster may join later; none is named while no Cluster is known.
func unknown(scope *shipper.RolloutBlockScope, clusters []shipper.Cluster) []string {
	if scope == nil || len(clusters) == 0 {
		return nil
	}
	var names, regions []string
	for i := range clusters {
		names, regions = append(names, clusters[i].Name), append(regions, clusters[i].Spec.Region)
	}
	var out []string
	look := func(path, what string, wanted, known []string) {
		for i, name := range wanted {
			if slices.Contains(known, name) {
				continue
			}
			text := fmt.Sprintf("spec.scope.%s[%d]: %s %q, so this stops nothing there", path, i, what, name)
			if near := placement.Nearest(name, slices.Values(known)); near != "" {
				text += fmt.Sprintf("; did you mean %q?", near)
			}
			out = append(out, text)
		}
	}
	look("regions", "no cluster has the region", scope.Regions, regions)
	look("clusters", "there is no cluster", scope.Clusters, names)
	return out
}
