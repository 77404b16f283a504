// SPDX-License-Identifier: Apache-2.0

package installation

import shipper "shipper.dev/shipper/apis/shipper/v1alpha1"

// maxMessage bounds the drifted fields, and the unhealthy objects, that a status lists for all clusters
// together, but for one in each. etcd takes objects of 1.5 MiB: a fault in every cluster of a large fleet would exceed that, and
// then no status could be written, and no rollout could continue.
const maxMessage = 600

// bounded are clusters with at most maxMessage of each. It copies what it shortens.
func bounded(clusters []shipper.ClusterInstallationStatus) []shipper.ClusterInstallationStatus {
	each := max(maxMessage/max(len(clusters), 1), 1)
	for i := range clusters {
		if o := clusters[i].Objects; o != nil && len(o.Unhealthy) > each {
			told := *o
			told.Unhealthy = o.Unhealthy[:each]
			clusters[i].Objects = &told
		}
		clusters[i].Drift, clusters[i].Diff = boundedDrift(clusters[i].Drift, each), boundedDrift(clusters[i].Diff, each)
	}
	return clusters
}

// boundedDrift names at most each fields.
func boundedDrift(d *shipper.InstalledDrift, each int) *shipper.InstalledDrift {
	if d == nil || len(d.Fields) <= each {
		return d
	}
	told := *d
	told.Fields, told.Omitted = d.Fields[:each], d.Omitted+int32(len(d.Fields)-each)
	return &told
}
