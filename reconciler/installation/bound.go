// SPDX-License-Identifier: Apache-2.0

package installation

import shipper "shipper.dev/shipper/apis/shipper/v1alpha1"

// maxMessage is how many fields that drifted, and how many objects that are not healthy, a target tells of in all its clusters
// together, but for one in each. etcd takes objects of 1.5 MiB: what goes wrong everywhere in a large fleet would have more, and
// then nothing at all could be told, and no rollout go on.
const maxMessage = 600

// bounded are clusters of which no more is told than fits into one object. What was there before is not changed.
func bounded(clusters []shipper.ClusterInstallationStatus) []shipper.ClusterInstallationStatus {
	each := max(maxMessage/max(len(clusters), 1), 1)
	for i := range clusters {
		if o := clusters[i].Objects; o != nil && len(o.Unhealthy) > each {
			told := *o
			told.Unhealthy = o.Unhealthy[:each]
			clusters[i].Objects = &told
		}
		if d := clusters[i].Drift; d != nil && len(d.Fields) > each {
			told := *d
			told.Fields, told.Omitted = d.Fields[:each], d.Omitted+int32(len(d.Fields)-each)
			clusters[i].Drift = &told
		}
	}
	return clusters
}
