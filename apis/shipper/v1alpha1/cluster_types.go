// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxAPIVersions bounds status.apiVersions of a Cluster: those of Kubernetes are about 150.
const MaxAPIVersions = 3000

// DefaultClusterWeight is a Cluster's weight when spec.scheduler.weight is absent.
const DefaultClusterWeight int32 = 100

// Cluster is a Kubernetes cluster that Shipper may install into. Its credentials are in the Secret of the same name in
// Shipper's namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusters,shortName=cl,scope=Cluster,categories={shipper}
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="CPU",type=string,priority=1,JSONPath=`.status.allocatable.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,priority=1,JSONPath=`.status.allocatable.memory`
// +kubebuilder:printcolumn:name="Unschedulable",type=boolean,JSONPath=`.spec.scheduler.unschedulable`
// +kubebuilder:printcolumn:name="API Master",type=string,priority=1,JSONPath=`.spec.apiMaster`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.status=="False")].message`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.kubernetesVersion`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the address, region and capabilities of the cluster.
	Spec ClusterSpec `json:"spec"`

	// status says whether Shipper can reach the cluster. Written by the reconciler.
	// +optional
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterSpec is the address, region and capabilities of a cluster.
type ClusterSpec struct {
	// capabilities are tags, which clusterRequirements.capabilities select. Absent means none.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	Capabilities []string `json:"capabilities"`

	// region the cluster belongs to.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Region string `json:"region"`

	// apiMaster is the URL of the cluster's API server, as in a kubeconfig.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	APIMaster string `json:"apiMaster"`

	// scheduler says how Releases are placed on this cluster.
	// +optional
	Scheduler ClusterSchedulerSettings `json:"scheduler"`

	// metrics is the Prometheus server with the metrics of this cluster, which Checks without an address ask. Absent means none.
	// +optional
	Metrics *ClusterMetrics `json:"metrics,omitempty"`

	// taints keep off this cluster all Applications with a placement that do not tolerate them, and all with regions. No two
	// have the same key and effect. Absent means none. The original had no such field.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Taints []ClusterTaint `json:"taints,omitempty"`

	// properties are facts about the cluster, by name, that placements compare: quantities such as 5, 500m or 2Gi. They win over
	// observed ones of the same name. Absent means none. The original had no such field.
	// +optional
	// +kubebuilder:validation:MaxProperties=50
	Properties map[string]string `json:"properties,omitempty"`

	// onLeave says what becomes of what Shipper placed in the cluster when this object is deleted. Keep: it stays as it is. Remove: the
	// object stays until Shipper has removed all of it. Absent means Keep. The original had no such field.
	// +optional
	OnLeave ClusterLeavePolicy `json:"onLeave,omitempty"`
}

// ClusterLeavePolicy says what becomes of what is placed in a cluster that leaves.
// +kubebuilder:validation:Enum=Keep;Remove
type ClusterLeavePolicy string

// The values of ClusterLeavePolicy.
const (
	OnLeaveKeep   ClusterLeavePolicy = "Keep"
	OnLeaveRemove ClusterLeavePolicy = "Remove"
)

// ClusterMetrics is the Prometheus server with the metrics of a cluster.
type ClusterMetrics struct {
	// address is its URL, as Shipper reaches it: https, or one that --outgoing-urls lists.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Address string `json:"address"`

	// secretName is the Secret in Shipper's namespace with credentials: username and password, or token; ca.crt; tls.crt and tls.key.
	// Absent means none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`

	// tenantLabel is the label that has the namespace of each series. Every selector of a query is forced to have the namespace of the
	// Application in it, so that no Application reads the series of another namespace. Empty means that every Application reads all: that
	// has to be said.
	// +kubebuilder:validation:Pattern=`^([a-zA-Z_][a-zA-Z0-9_]*)?$`
	// +kubebuilder:validation:MaxLength=128
	TenantLabel string `json:"tenantLabel"`
}

// ClusterSchedulerSettings say how Releases are placed on a cluster.
type ClusterSchedulerSettings struct {
	// unschedulable keeps new Releases off this cluster; those already placed stay. Absent means false.
	// +optional
	Unschedulable bool `json:"unschedulable"`

	// weight raises or lowers the preference for this cluster. Absent means 100; 0 puts it last.
	// +optional
	Weight *int32 `json:"weight,omitempty"`

	// identity is the name that placement uses for this cluster, so that it can replace a cluster of that name. Absent means
	// metadata.name.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Identity *string `json:"identity,omitempty"`
}

// ClusterStatus says whether Shipper can reach a cluster.
type ClusterStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// inService is true while Shipper can reach the cluster.
	// +optional
	InService bool `json:"inService"`

	// kubernetesVersion is the version that the API server reports, for example v1.37.1.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// apiVersions are the APIs that the cluster served when Shipper last connected to it, as charts look them up: group/version and
	// group/version/Kind. Admission renders charts with them. Absent until they are known, and if there are more than 3000. The original
	// had no such field.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3000
	APIVersions []string `json:"apiVersions,omitempty"`

	// nodes is the number of its Nodes. Absent until they are known.
	// +optional
	Nodes *int32 `json:"nodes,omitempty"`

	// capacity is the sum of the capacities of its Nodes, by resource. Absent until they are known.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// allocatable is the sum of what its Nodes have for Pods, by resource. Absent until they are known.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// properties are those that ConfigMaps in the cluster declare: the data of each ConfigMap in shipper-system with the label
	// shipper.booking.com/properties: "true". At most 100, the first by name.
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	Properties map[string]string `json:"properties,omitempty"`

	// conditions, sorted by type: CredentialsValid, Joined, Leaving, PropertiesKnown, Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
}

// ClusterList is a list of Clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cluster `json:"items"`
}
