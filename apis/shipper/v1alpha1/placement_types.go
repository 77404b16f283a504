// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Placement is a policy that chooses clusters. It takes the place of clusterRequirements.regions.
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'PickN' || has(self.count)",message="needed for PickN: how many clusters",fieldPath=".count",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.count) || has(self.type) && self.type == 'PickN'",message="only for PickN; a type that is absent is PickAll",fieldPath=".count",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'PickFixed' || has(self.clusters)",message="needed for PickFixed: the names of the clusters",fieldPath=".clusters",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.clusters) || has(self.type) && self.type == 'PickFixed'",message="only for PickFixed; others choose by names in affinity.required",fieldPath=".clusters",reason=FieldValueForbidden
type Placement struct {
	// type is how many of the clusters that fit are chosen. PickAll: all, also those that join later. PickN: count of them, those that
	// rank highest. PickFixed: those that clusters names, whatever their taints. Absent means PickAll.
	// +optional
	Type PlacementType `json:"type,omitempty"`

	// clusters are the names of the clusters that PickFixed chooses. A cluster of this name that joins later is chosen then.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Clusters []string `json:"clusters,omitempty"`

	// count is how many clusters PickN chooses. While fewer fit, the found ones are used and each change of a cluster is another try.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Count *int32 `json:"count,omitempty"`

	// affinity says which clusters fit, and which of them rank higher. Absent means that all fit and rank alike. Not with PickFixed.
	// +optional
	Affinity *ClusterAffinity `json:"affinity,omitempty"`

	// topologySpreadConstraints spread the clusters that PickN chooses over the values of a label. No two have the
	// same topologyKey and whenUnsatisfiable. Absent means no spread.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// tolerations are the taints of clusters that do not keep the Application off. Absent means none. Not with PickFixed, which
	// ignores taints.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Tolerations []ClusterToleration `json:"tolerations,omitempty"`
}

// PlacementType says how many of the clusters that fit are chosen.
// +kubebuilder:validation:Enum=PickAll;PickN;PickFixed
type PlacementType string

// The values of PlacementType.
const (
	PickAll   PlacementType = "PickAll"
	PickN     PlacementType = "PickN"
	PickFixed PlacementType = "PickFixed"
)

// ClusterAffinity says which clusters fit, and which of them rank higher.
type ClusterAffinity struct {
	// required are the terms of which a cluster has to match at least one. Absent means that every cluster fits.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Required []ClusterTerm `json:"required,omitempty"`

	// preferred raise or lower the rank of clusters; the scores of all are added. Only with PickN.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Preferred []PreferredClusterTerm `json:"preferred,omitempty"`
}

// ClusterTerm describes clusters. All that it says has to be true of a cluster. An empty term describes every cluster;
// required terms may not be empty.
type ClusterTerm struct {
	// names are the names of the clusters. Absent means any name.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Names []string `json:"names,omitempty"`

	// labelSelector selects by the labels of Cluster objects. Besides these a cluster has shipper.booking.com/region,
	// shipper.booking.com/cluster with its name, and for each capability capability.shipper.booking.com/CAPABILITY with an empty value.
	// At most 20 labels and expressions, with 100 values each. Absent means any labels.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// properties are what the properties of the cluster have to be; a cluster that lacks one does not match. Absent means any.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	Properties []PropertyRequirement `json:"properties,omitempty"`
}

// PropertyRequirement compares a property of a cluster with a value.
type PropertyRequirement struct {
	// name of the property: nodes, cpu.capacity, cpu.allocatable, memory.capacity, memory.allocatable, or those of another resource;
	// kubernetes; or one that the Cluster or a ConfigMap in the cluster declares.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// operator compares the property, on the left, with value.
	Operator PropertyOperator `json:"operator"`

	// value is a quantity such as 5, 500m or 2Gi or, for kubernetes, a version such as 1.33.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value"`
}

// PropertyOperator compares a property with a value.
// +kubebuilder:validation:Enum=Gt;Ge;Eq;Ne;Le;Lt
type PropertyOperator string

// The values of PropertyOperator.
const (
	PropertyGt PropertyOperator = "Gt"
	PropertyGe PropertyOperator = "Ge"
	PropertyEq PropertyOperator = "Eq"
	PropertyNe PropertyOperator = "Ne"
	PropertyLe PropertyOperator = "Le"
	PropertyLt PropertyOperator = "Lt"
)

// PreferredClusterTerm raises or lowers the rank of the clusters that it describes.
type PreferredClusterTerm struct {
	// weight is the score of a cluster that matches. With sort, it is that of the first cluster, and those between it and the last
	// get a share.
	// +kubebuilder:validation:Minimum=-100
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`

	ClusterTerm `json:",inline"`

	// sort gives each cluster a share of weight by its place between the least and the greatest value of a property. A cluster without
	// the property gets 0; if all have the same value, each gets weight. Absent means that every cluster that matches gets weight.
	// +optional
	Sort *PropertySort `json:"sort,omitempty"`
}

// PropertySort orders clusters by a property.
type PropertySort struct {
	// property is its name, as in properties of a term.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Property string `json:"property"`

	// order is Ascending, when the cluster with the least value is the first, or Descending.
	Order SortOrder `json:"order"`
}

// SortOrder says whether the least or the greatest comes first.
// +kubebuilder:validation:Enum=Ascending;Descending
type SortOrder string

// The values of SortOrder.
const (
	SortAscending  SortOrder = "Ascending"
	SortDescending SortOrder = "Descending"
)

// TopologySpreadConstraint spreads clusters over the values of a label. Its fields mean what they mean for Pods.
type TopologySpreadConstraint struct {
	// maxSkew is by how many clusters a value of the label may have more than another. Absent means 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxSkew int32 `json:"maxSkew,omitempty"`

	// topologyKey is the label; shipper.booking.com/region is the region. A cluster without the label is bound by no constraint on it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	TopologyKey string `json:"topologyKey"`

	// whenUnsatisfiable is DoNotSchedule, which never chooses a cluster that would exceed maxSkew, or ScheduleAnyway, which ranks it
	// lower. Absent means DoNotSchedule.
	// +optional
	WhenUnsatisfiable UnsatisfiableConstraintAction `json:"whenUnsatisfiable,omitempty"`
}

// UnsatisfiableConstraintAction says what a cluster is that would exceed maxSkew.
// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
type UnsatisfiableConstraintAction string

// The values of UnsatisfiableConstraintAction.
const (
	DoNotSchedule  UnsatisfiableConstraintAction = "DoNotSchedule"
	ScheduleAnyway UnsatisfiableConstraintAction = "ScheduleAnyway"
)

// ClusterToleration is a taint of clusters that does not keep an Application off. Its fields mean what they mean for Pods.
type ClusterToleration struct {
	// key of the taint. Empty with the operator Exists means every taint.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key,omitempty"`

	// operator is Equal, when the value has to be the same, or Exists, for any value. Absent means Equal.
	// +optional
	Operator TolerationOperator `json:"operator,omitempty"`

	// value of the taint, for Equal.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value,omitempty"`

	// effect of the taint. Empty means every effect.
	// +optional
	Effect ClusterTaintEffect `json:"effect,omitempty"`
}

// TolerationOperator says how the value of a taint is compared.
// +kubebuilder:validation:Enum=Equal;Exists
type TolerationOperator string

// The values of TolerationOperator.
const (
	TolerationEqual  TolerationOperator = "Equal"
	TolerationExists TolerationOperator = "Exists"
)

// ClusterTaint keeps off a cluster all Applications that do not tolerate it. Its fields mean what they mean for Nodes.
type ClusterTaint struct {
	// key of the taint, formed as that of a label.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`

	// value of the taint, formed as that of a label. Absent means empty.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value,omitempty"`

	// effect is NoSchedule: the cluster is not chosen, and what is placed there stays. Absent means NoSchedule.
	// +optional
	Effect ClusterTaintEffect `json:"effect,omitempty"`
}

// ClusterTaintEffect says what a taint does to Applications that do not tolerate it.
// +kubebuilder:validation:Enum=NoSchedule
type ClusterTaintEffect string

// TaintNoSchedule keeps a cluster from being chosen; objects in it stay.
const TaintNoSchedule ClusterTaintEffect = "NoSchedule"

// ReleasePlacement says why a Release has its clusters, and why it has no others.
type ReleasePlacement struct {
	// wanted is how many clusters the policy wants: count of PickN, the names of PickFixed, or all that fit of PickAll, at least 1.
	Wanted int32 `json:"wanted"`

	// chosen is how many clusters the Release has.
	Chosen int32 `json:"chosen"`

	// clusters are those that it has, by name, also those that leave while others take their place.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Clusters []ChosenCluster `json:"clusters,omitempty"`

	// rejected are the reasons for which clusters were not chosen, by reason.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Rejected []RejectedClusters `json:"rejected,omitempty"`
}

// ChosenCluster is a cluster that a Release has.
type ChosenCluster struct {
	// name of the cluster.
	Name string `json:"name"`

	// reason is Picked, when it was chosen for this Release, or Kept, when the Release before had it.
	Reason PlacementReason `json:"reason"`

	// affinityScore is the sum of the scores of preferred terms, when it was picked.
	// +optional
	AffinityScore int32 `json:"affinityScore,omitempty"`

	// spreadScore says how the cluster served the spread when it was picked: it is lowered by 1000 for each constraint that it exceeds.
	// +optional
	SpreadScore int32 `json:"spreadScore,omitempty"`
}

// RejectedClusters are the clusters that were not chosen for one reason.
type RejectedClusters struct {
	// reason, as one word.
	Reason PlacementReason `json:"reason"`

	// count of the clusters.
	Count int32 `json:"count"`

	// examples are the first of their names, 10 at most.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Examples []string `json:"examples,omitempty"`

	// message says of the first example what would change that.
	// +optional
	Message string `json:"message,omitempty"`
}

// PlacementReason says why a cluster is chosen or not.
type PlacementReason string

// The values of PlacementReason.
const (
	// PlacementPicked is a cluster that was chosen afresh.
	PlacementPicked PlacementReason = "Picked"
	// PlacementKept is a cluster that stays because it was chosen before.
	PlacementKept PlacementReason = "Kept"
	// PlacementLeaving is a cluster that is being deleted.
	PlacementLeaving PlacementReason = "Leaving"
	// PlacementNotJoined is a cluster that was never ready.
	PlacementNotJoined PlacementReason = "NotJoined"
	// PlacementNotReady is a cluster that has not been ready for longer than --unhealthy-after.
	PlacementNotReady PlacementReason = "NotReady"
	// PlacementUnschedulable is a cluster with spec.scheduler.unschedulable.
	PlacementUnschedulable PlacementReason = "Unschedulable"
	// PlacementCapabilityMissing is a cluster without a required capability.
	PlacementCapabilityMissing PlacementReason = "CapabilityMissing"
	// PlacementTainted is a cluster with a taint that is not tolerated.
	PlacementTainted PlacementReason = "Tainted"
	// PlacementAffinityNotMet is a cluster whose name or labels match no required term.
	PlacementAffinityNotMet PlacementReason = "AffinityNotMet"
	// PlacementPropertyNotMet is a cluster that matches no required term because of a property.
	PlacementPropertyNotMet PlacementReason = "PropertyNotMet"
	// PlacementPropertyUnknown is a cluster that matches no required term because it lacks a property.
	PlacementPropertyUnknown PlacementReason = "PropertyUnknown"
	// PlacementSpreadViolated is a cluster that would exceed the maxSkew of a constraint.
	PlacementSpreadViolated PlacementReason = "SpreadViolated"
	// PlacementOutranked is a cluster that fits while enough others rank higher.
	PlacementOutranked PlacementReason = "Outranked"
	// PlacementNotNamed is a cluster that PickFixed does not name.
	PlacementNotNamed PlacementReason = "NotNamed"
)
