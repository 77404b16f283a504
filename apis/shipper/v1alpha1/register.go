// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every kind of Shipper.
const GroupName = "shipper.booking.com"

// GroupVersion is the only version of the group, served and stored.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// Resource qualifies a plural such as "releases" with the group, for errors and authorization.
func Resource(plural string) schema.GroupResource {
	return GroupVersion.WithResource(plural).GroupResource()
}

// AddToScheme registers all kinds and their lists. It always returns nil; the error is what scheme builders expect.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Application{}, &ApplicationList{},
		&Release{}, &ReleaseList{},
		&InstallationTarget{}, &InstallationTargetList{},
		&CapacityTarget{}, &CapacityTargetList{},
		&TrafficTarget{}, &TrafficTargetList{},
		&Cluster{}, &ClusterList{},
		&RolloutBlock{}, &RolloutBlockList{},
		&ChartSnapshot{}, &ChartSnapshotList{},
		&Approval{}, &ApprovalList{},
		&Notification{}, &NotificationList{},
		&Check{}, &CheckList{},
		&CheckTarget{}, &CheckTargetList{},
		&ResourceSnapshot{}, &ResourceSnapshotList{},
		&Envelope{}, &EnvelopeList{},
		&Shipyard{}, &ShipyardList{},
		&SequenceRun{}, &SequenceRunList{},
		&ResourceOverride{}, &ResourceOverrideList{},
		&Strategy{}, &StrategyList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
