// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxSadPods is how many Pods that are not ready are described per cluster.
const MaxSadPods = 5

// CapacityTarget says how many Pods a Release should have in each cluster, and how many it has. It has its Release's name. Only
// the reconciler writes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=capacitytargets,shortName=ct,categories={shipper}
// +kubebuilder:printcolumn:name="Operational",type=string,JSONPath=`.status.conditions[?(@.type=="Operational")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.status=="False")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CapacityTarget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the capacity requested in each cluster.
	Spec CapacityTargetSpec `json:"spec"`

	// status is the capacity observed in each cluster.
	// +optional
	Status CapacityTargetStatus `json:"status,omitempty"`
}

// CapacityTargetSpec is the capacity requested in each cluster.
type CapacityTargetSpec struct {
	// clusters and the capacity requested in each.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10000
	Clusters []ClusterCapacityTarget `json:"clusters"`
}

// ClusterCapacityTarget is the capacity requested in one cluster: ceil(totalReplicaCount × percent / 100) Pods.
type ClusterCapacityTarget struct {
	// name of the cluster.
	Name string `json:"name"`
	// percent of totalReplicaCount, from 0 to 100.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percent int32 `json:"percent"`
	// totalReplicaCount is the number of Pods at 100 %: the replicas in the chart's Deployments and, where its objects are named by
	// Application, StatefulSets. The percentage bears on each of them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TotalReplicaCount int32 `json:"totalReplicaCount"`
	// asFound is true until a step first requests capacity in this cluster. Until then Shipper keeps the number of Pods it found
	// there, and percent is 0 and has no meaning.
	// +optional
	AsFound bool `json:"asFound,omitempty"`
}

// CapacityTargetStatus is the capacity observed in each cluster.
type CapacityTargetStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// clusters has one entry for each cluster, in the order of their names.
	// +optional
	// +listType=map
	// +listMapKey=name
	Clusters []ClusterCapacityStatus `json:"clusters,omitempty"`

	// conditions over all clusters, sorted by type: Operational, Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
}

// ClusterCapacityStatus is the capacity of a Release in one cluster.
type ClusterCapacityStatus struct {
	// name of the cluster.
	Name string `json:"name"`
	// availableReplicas is the number of Pods that are available.
	AvailableReplicas int32 `json:"availableReplicas"`
	// achievedPercent is availableReplicas as a percentage of totalReplicaCount, rounded up; 0 of 0 is 100. Of several workloads it is the
	// lowest percentage.
	AchievedPercent int32 `json:"achievedPercent"`
	// sadPods describes up to five Pods that are not ready, in the order of their names.
	// +optional
	// +listType=atomic
	SadPods []PodStatus `json:"sadPods,omitempty"`
	// conditions, sorted by type: Operational, Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// reports sums up all Pods by their state, in one report for each workload, the worst first. Pods of workloads that change in place
	// are not in it.
	// +optional
	// +listType=atomic
	Reports []ClusterCapacityReport `json:"reports,omitempty"`
}

// PodStatus describes a Pod that is not ready.
type PodStatus struct {
	// name of the Pod.
	Name string `json:"name"`
	// phase of the Pod.
	// +optional
	Phase corev1.PodPhase `json:"phase,omitempty"`
	// condition is the one that keeps the Pod from being ready.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Condition corev1.PodCondition `json:"condition"`
	// initContainers are the states of the Pod's init containers.
	// +optional
	// +listType=atomic
	InitContainers []corev1.ContainerStatus `json:"initContainers,omitempty"`
	// containers are the states of the Pod's containers.
	// +optional
	// +listType=atomic
	Containers []corev1.ContainerStatus `json:"containers,omitempty"`
}

// ClusterCapacityReport sums up the Pods of one workload.
type ClusterCapacityReport struct {
	// owner is the workload.
	Owner ClusterCapacityReportOwner `json:"owner"`
	// breakdown counts Pods by condition, sorted by type and status.
	// +optional
	// +listType=atomic
	Breakdown []ClusterCapacityReportBreakdown `json:"breakdown,omitempty"`
}

// ClusterCapacityReportOwner names the workload a report is about.
type ClusterCapacityReportOwner struct {
	// name of the workload.
	Name string `json:"name"`
}

// ClusterCapacityReportBreakdown counts the Pods that share one condition.
type ClusterCapacityReportBreakdown struct {
	// type of the Pods' condition.
	Type string `json:"type"`
	// status of that condition.
	Status string `json:"status"`
	// reason of that condition.
	// +optional
	Reason string `json:"reason,omitempty"`
	// count of Pods.
	Count int32 `json:"count"`
	// containers breaks the Pods down by container and state, sorted by name.
	// +optional
	// +listType=atomic
	Containers []ClusterCapacityReportContainerBreakdown `json:"containers,omitempty"`
}

// ClusterCapacityReportContainerBreakdown counts the states of one container over many Pods.
type ClusterCapacityReportContainerBreakdown struct {
	// name of the container.
	Name string `json:"name"`
	// states the container is in, sorted by type and reason.
	// +listType=atomic
	States []ClusterCapacityReportContainerStateBreakdown `json:"states"`
}

// ClusterCapacityReportContainerStateBreakdown counts Pods whose container is in one state.
type ClusterCapacityReportContainerStateBreakdown struct {
	// count of Pods.
	Count int32 `json:"count"`
	// type is Running, Waiting or Terminated; Unknown when the kubelet gave none.
	Type string `json:"type"`
	// reason the kubelet gave.
	// +optional
	Reason string `json:"reason,omitempty"`
	// example is one Pod in this state.
	Example ClusterCapacityReportContainerBreakdownExample `json:"example"`
}

// ClusterCapacityReportContainerBreakdownExample is one Pod of many.
type ClusterCapacityReportContainerBreakdownExample struct {
	// pod is its name.
	Pod string `json:"pod"`
	// message is the termination message of its container.
	// +optional
	Message string `json:"message,omitempty"`
}

// CapacityTargetList is a list of CapacityTargets.
//
// +kubebuilder:object:root=true
type CapacityTargetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CapacityTarget `json:"items"`
}
