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

	// valuesPerRegion are merged over values in the clusters of a region.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	ValuesPerRegion []ValuesFor `json:"valuesPerRegion,omitempty"`

	// valuesPerCluster are merged over values and those of the region in one cluster.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1000
	ValuesPerCluster []ValuesFor `json:"valuesPerCluster,omitempty"`

	// regions has, by name of a cluster, the region it was in when it was chosen, where valuesPerRegion says something: a cluster
	// that is moved to another region later goes on with what was installed there. Absent without valuesPerRegion.
	// +optional
	Regions map[string]string `json:"regions,omitempty"`

	// valuesFrom are ConfigMaps and Secrets that held more values, under values, and valuesDigests what they held. What that was is kept
	// for the Release, in a Secret.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	ValuesFrom []ValuesSource `json:"valuesFrom,omitempty"`

	// valuesDigests are as in the Release.
	// +optional
	// +kubebuilder:validation:MaxProperties=10
	ValuesDigests map[string]string `json:"valuesDigests,omitempty"`
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
	// objects sums up how the objects are that this target wrote in the cluster; those that another Release has taken over are
	// that one's to tell of. Absent while nothing is known. Of a cluster that cannot be reached it is what was known last.
	// +optional
	Objects *InstalledObjects `json:"objects,omitempty"`
	// drift says how the objects that this target wrote differ from what was released. Absent when they do not, and where the
	// Application's driftPolicy is Ignore. Of a cluster that cannot be reached it is what was known last.
	// +optional
	Drift *InstalledDrift `json:"drift,omitempty"`
	// hooks of the chart that were begun in the cluster, in the order they were, each with its last run. Absent when there are
	// none.
	// +optional
	// +listType=atomic
	Hooks []HookRun `json:"hooks,omitempty"`
	// test is the last run of the chart's tests in the cluster. Absent until one is asked for.
	// +optional
	Test *TestRun `json:"test,omitempty"`
}

// InstalledDrift says how objects differ from what was released. It is bounded, whatever is done to them.
type InstalledDrift struct {
	// objects is how many of them differ.
	Objects int32 `json:"objects"`
	// fields that differ, 20 at most.
	// +optional
	// +listType=atomic
	Fields []DriftedField `json:"fields,omitempty"`
	// omitted is how many more fields differ.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
	// message says what could not be compared, and why.
	// +optional
	Message string `json:"message,omitempty"`
}

// DriftedField is a field of an object that is not as it was released.
type DriftedField struct {
	// apiVersion is the object's group and version.
	APIVersion string `json:"apiVersion"`
	// kind is its kind.
	Kind string `json:"kind"`
	// name is its name.
	Name string `json:"name"`
	// field is the path to it, elements of lists by their names: spec.template.spec.containers[name=app].image.
	Field string `json:"field"`
	// want is what was released, as JSON, 128 bytes of it at most; empty when the field is not to be there.
	// +optional
	Want string `json:"want,omitempty"`
	// have is what is there instead; empty when the field is not there.
	// +optional
	Have string `json:"have,omitempty"`
	// hidden is true for Secrets, of which neither want nor have are told.
	// +optional
	Hidden bool `json:"hidden,omitempty"`
	// manager is who wrote it, by the name it gave the API server; empty when that is not known.
	// +optional
	Manager string `json:"manager,omitempty"`
}

// InstalledObjects sums up how objects are, as kstatus judges them. It is bounded, whatever a chart brings.
type InstalledObjects struct {
	// total is how many objects there are to be.
	Total int32 `json:"total"`
	// healthy is how many of them are there and as their own controllers want them.
	Healthy int32 `json:"healthy"`
	// kinds has the same by kind, sorted by kind; 50 at most.
	// +optional
	// +listType=atomic
	Kinds []InstalledKind `json:"kinds,omitempty"`
	// unhealthy names objects that are not healthy, those first that have failed; 10 at most.
	// +optional
	// +listType=atomic
	Unhealthy []UnhealthyObject `json:"unhealthy,omitempty"`
}

// InstalledKind counts objects of one kind.
type InstalledKind struct {
	// apiVersion is the kind's group and version.
	APIVersion string `json:"apiVersion"`
	// kind is its name.
	Kind string `json:"kind"`
	// total is how many there are to be.
	Total int32 `json:"total"`
	// healthy is how many of them are healthy.
	Healthy int32 `json:"healthy"`
}

// UnhealthyObject is an object that is not as its own controller wants it.
type UnhealthyObject struct {
	// apiVersion is its group and version.
	APIVersion string `json:"apiVersion"`
	// kind is its kind.
	Kind string `json:"kind"`
	// name is its name.
	Name string `json:"name"`
	// status is InProgress, Failed, Terminating, NotFound or Unknown.
	Status string `json:"status"`
	// reason is one word of kstatus, or of the object's own condition Ready, for what is awaited or wrong.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says what has failed, when status is Failed.
	// +optional
	Message string `json:"message,omitempty"`
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
