// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TrafficTarget says how much traffic a Release should have in each cluster, and how much it has. It has its Release's name.
// Only the reconciler writes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=traffictargets,shortName=tt,categories={shipper}
// +kubebuilder:printcolumn:name="Operational",type=string,JSONPath=`.status.conditions[?(@.type=="Operational")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.status=="False")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type TrafficTarget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the traffic requested in each cluster.
	Spec TrafficTargetSpec `json:"spec"`

	// status is the traffic observed in each cluster.
	// +optional
	Status TrafficTargetStatus `json:"status,omitempty"`
}

// TrafficTargetSpec is the traffic requested in each cluster.
type TrafficTargetSpec struct {
	// clusters and the weight requested in each.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10000
	Clusters []ClusterTrafficTarget `json:"clusters"`
}

// ClusterTrafficTarget is the weight of a Release in one cluster, relative to the other Releases of its Application.
type ClusterTrafficTarget struct {
	// name of the cluster.
	Name string `json:"name"`
	// weight relative to the sum of the weights of all Releases of the Application in this cluster; 0 means no traffic.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Weight uint32 `json:"weight"`
	// asFound is true until a step first requests traffic in this cluster. Until then the Pods that take traffic there keep it, and
	// weight is 0 and has no meaning.
	// +optional
	AsFound bool `json:"asFound,omitempty"`
	// sole is true where this Release is to have all traffic at once, whatever the weights of others: the Service is switched to its Pods
	// as soon as all of them are known to be endpoints. Written where the strategy uses after, gate, checks, progressDeadline or onFailure,
	// and its step leaves the other Release no weight.
	// +optional
	Sole bool `json:"sole,omitempty"`
	// preview is Release where the preview Service is to select the Pods of this Release, and None where it is to select no Pods. Absent:
	// the target says nothing about the preview Service. Written where the cluster has one.
	// +optional
	Preview PreviewSelection `json:"preview,omitempty"`
}

// PreviewSelection is what a target says about the preview Service.
// +kubebuilder:validation:Enum=Release;None
type PreviewSelection string

// The values of PreviewSelection.
const (
	PreviewRelease PreviewSelection = "Release"
	PreviewNone    PreviewSelection = "None"
)

// TrafficTargetStatus is the traffic observed in each cluster.
type TrafficTargetStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// clusters has one entry for each cluster, in the order of their names.
	// +optional
	// +listType=map
	// +listMapKey=name
	Clusters []ClusterTrafficStatus `json:"clusters,omitempty"`

	// conditions over all clusters, sorted by type: EndpointsOwned while it is False, Operational, Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
}

// Traffic in one cluster: the values of ClusterTrafficStatus.status.
const (
	TrafficStatusSynced = "Synced"
	TrafficStatusFailed = "Failed"
)

// ClusterTrafficStatus is the traffic of a Release in one cluster.
type ClusterTrafficStatus struct {
	// name of the cluster.
	Name string `json:"name"`
	// achievedTraffic is the weight that corresponds to the number of Pods that take traffic. Where asFound is true, it is their
	// percentage of the traffic.
	AchievedTraffic uint32 `json:"achievedTraffic"`
	// status is Synced or Failed; empty while neither is known.
	// +optional
	Status string `json:"status,omitempty"`
	// preview is the name of the preview Service in the cluster. Absent where there is none.
	// +optional
	Preview string `json:"preview,omitempty"`
	// conditions, sorted by type: Addressed of Services of type LoadBalancer, EndpointsOwned while it is False, Operational, Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
}

// TrafficTargetList is a list of TrafficTargets.
//
// +kubebuilder:object:root=true
type TrafficTargetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TrafficTarget `json:"items"`
}
