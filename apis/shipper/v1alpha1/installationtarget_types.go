// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// InstallationTarget says in which clusters a Release's chart is installed, and how that went. It has its Release's name
// and is written by the reconciler only.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=installationtargets,shortName=it,categories={shipper}
// +kubebuilder:printcolumn:name="Operational",type=string,JSONPath=`.status.conditions[?(@.type=="Operational")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.status=="False")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type InstallationTarget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what to install where.
	Spec InstallationTargetSpec `json:"spec"`

	// status is how far the installation is, per cluster.
	// +optional
	Status InstallationTargetStatus `json:"status,omitempty"`
}

// InstallationTargetSpec is what to install where.
type InstallationTargetSpec struct {
	// clusters are the names of the clusters to install into.
	// +listType=set
	// +kubebuilder:validation:MaxItems=10000
	Clusters []string `json:"clusters"`

	// canOverride is true while this target may take over objects that other Releases of the same Application share with it:
	// while its Release is the newest.
	CanOverride bool `json:"canOverride"`

	// chart to install, its version exact.
	// +optional
	// +nullable
	Chart *Chart `json:"chart,omitempty"`

	// values for the chart. Absent means the chart's own defaults.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Values *ChartValues `json:"values,omitempty"`
}

// InstallationTargetStatus is how far an installation is.
type InstallationTargetStatus struct {
	// observedGeneration is the metadata.generation this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// clusters has one entry for each cluster, in the order of their names.
	// +optional
	// +listType=map
	// +listMapKey=name
	Clusters []ClusterInstallationStatus `json:"clusters,omitempty"`

	// conditions over all clusters, sorted by type: Operational, Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
}

// Installation of a chart in one cluster: the values of ClusterInstallationStatus.status.
const (
	InstallationStatusInstalled = "Installed"
	InstallationStatusFailed    = "Failed"
)

// ClusterInstallationStatus is the state of an installation in one cluster.
type ClusterInstallationStatus struct {
	// name of the cluster.
	Name string `json:"name"`
	// status is Installed or Failed; empty while neither is known.
	// +optional
	Status string `json:"status,omitempty"`
	// message tells why status is Failed.
	// +optional
	Message string `json:"message,omitempty"`
	// conditions, sorted by type: Operational, Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// clusterScoped are the objects without a namespace that are installed in the cluster, but Namespaces and
	// CustomResourceDefinitions. Should the namespace there go, and with it the anchor that lists them, they are cleaned up by
	// this list.
	// +optional
	// +listType=atomic
	ClusterScoped []ClusterScopedObject `json:"clusterScoped,omitempty"`
}

// ClusterScopedObject is an installed object that has no namespace.
type ClusterScopedObject struct {
	// apiVersion is its group and version.
	APIVersion string `json:"apiVersion"`
	// kind is its kind.
	Kind string `json:"kind"`
	// name is its name.
	Name string `json:"name"`
	// uid tells it from another of its name.
	UID types.UID `json:"uid"`
	// digest is that of the manifest it was written from, as its annotation shipper.booking.com/installed-digest says.
	// +optional
	Digest string `json:"digest,omitempty"`
}

// InstallationTargetList is a list of InstallationTargets.
//
// +kubebuilder:object:root=true
type InstallationTargetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InstallationTarget `json:"items"`
}
