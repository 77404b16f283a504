// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// memberSpec has the fields of a MemberCluster that are converted.
type memberSpec struct {
	// Identity is the account of the agent in the management cluster. Shipper needs none: it connects to the cluster.
	Identity any                    `json:"identity"`
	Taints   []shipper.ClusterTaint `json:"taints"`
}

// unconvertedMember has what to do instead of a field of a MemberCluster that is not converted.
var unconvertedMember = map[string]string{
	"deleteOptions":          "is left out: deleting a Cluster is not validated, and waits until all is removed there (onLeave: Remove)",
	"heartbeatPeriodSeconds": "is left out: Shipper connects to each cluster itself, and asks each every 10 s",
}

// clusterOf makes a Cluster of a MemberCluster.
func clusterOf(d document, with settings) (fleetObject, error) {
	var from struct {
		Spec memberSpec `json:"spec"`
	}
	if err := d.checkObjectName(kindOfClusters); err != nil {
		return fleetObject{}, err
	}
	if err := decodeInto(d, &from); err != nil {
		return fleetObject{}, err
	}
	report := &report{object: d.title()}
	report.unread(d.Object["spec"], reflect.TypeFor[memberSpec](), "spec", unconvertedMember)
	cluster := &shipper.Cluster{TypeMeta: typeMeta(kindOfClusters), ObjectMeta: fleetMetadata(d, "")}
	cluster.Spec.APIMaster = placeholderServer
	report.add("spec", "names no API server, since KubeFleet's agent connects from there: join the cluster with `shipperctl clusters join`, "+
		"which sets the whole spec, and then apply this with the URL of the API server in place of %s", placeholderServer)
	cluster.Spec.Region = regionOf(d, with, report)
	// As in KubeFleet, where a cluster that leaves loses what was placed there.
	cluster.Spec.OnLeave = shipper.OnLeaveRemove
	for i, taint := range from.Spec.Taints {
		if cmp.Or(taint.Effect, shipper.TaintNoSchedule) != shipper.TaintNoSchedule {
			report.add(fmt.Sprintf("spec.taints[%d]", i), "is left out: it has the effect %s, and taints of Clusters have NoSchedule only",
				taint.Effect)
			continue
		}
		cluster.Spec.Taints = append(cluster.Spec.Taints, taint)
	}
	if errs := placement.ValidateTaints(cluster.Spec.Taints, field.NewPath("taints")); len(errs) > 0 {
		return fleetObject{}, d.failed("spec", "makes a Cluster that Shipper refuses: %w", errs.ToAggregate())
	}
	return fleetObject{object: cluster, kind: kindOfClusters, name: cluster.Name, reviews: report.reviews}, nil
}

// regionOf is the region of a cluster: that of its label, or else the one that was given.
func regionOf(d document, with settings, report *report) string {
	if region := d.GetLabels()[corev1.LabelTopologyRegion]; region != "" {
		return region
	}
	if len(with.regions) == 1 {
		return with.regions[0]
	}
	why := "give --region"
	if len(with.regions) > 1 {
		why = "--region names several"
	}
	report.add("metadata.labels", "have no %s: replace %s in the Cluster by its region (%s)", corev1.LabelTopologyRegion, placeholderRegion,
		why)
	return placeholderRegion
}
