// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// InstallationTarget says in which clusters a Release's chart is installed, and reports the result. It has its Release's name.
// Only the reconciler writes it.
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

	// spec is the chart, its values and the clusters.
	Spec InstallationTargetSpec `json:"spec"`

	// status is the state of the installation in each cluster.
	// +optional
	Status InstallationTargetStatus `json:"status,omitempty"`
}

// InstallationTargetSpec is the chart to install, its values and the clusters.
type InstallationTargetSpec struct {
	// clusters are the names of the clusters to install into.
	// +listType=set
	// +kubebuilder:validation:MaxItems=10000
	Clusters []string `json:"clusters"`

	// canOverride is true while this target may take over objects that it shares with other Releases of the same Application: while
	// its Release is the newest.
	CanOverride bool `json:"canOverride"`

	// chart to install, with an exact version.
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

	// regions has, by cluster name, the region that the cluster had when it was chosen, for valuesPerRegion. A cluster that moves to
	// another region later keeps the values of this one. Absent without valuesPerRegion.
	// +optional
	Regions map[string]string `json:"regions,omitempty"`

	// valuesFrom are the ConfigMaps and Secrets with more values; values override them. A Secret keeps a copy of their content for the
	// Release.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	ValuesFrom []ValuesSource `json:"valuesFrom,omitempty"`

	// valuesDigests are those of the Release.
	// +optional
	// +kubebuilder:validation:MaxProperties=10
	ValuesDigests map[string]string `json:"valuesDigests,omitempty"`

	// resources names the content to place, instead of a chart. Absent means that chart is installed.
	// +optional
	Resources *TargetResources `json:"resources,omitempty"`

	// overrides are copies of the ResourceOverrides that bore on the Application when the Release was created, in the order in which they are
	// applied: those of the Release. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=500
	Overrides []ReleaseOverride `json:"overrides,omitempty"`
}

// TargetResources name the content that is placed.
type TargetResources struct {
	// snapshot is the digest of the content, which ResourceSnapshots keep.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	Snapshot string `json:"snapshot"`
	// apply is that of the Release.
	// +optional
	Apply *Apply `json:"apply,omitempty"`
	// removal is that of the Release.
	// +optional
	Removal ResourcesRemoval `json:"removal,omitempty"`
	// ready is that of the Release.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Ready []ReadyRule `json:"ready,omitempty"`
	// unavailablePeriod is that of the Release's strategy.
	// +optional
	UnavailablePeriod Duration `json:"unavailablePeriod,omitempty"`
}

// InstallationTargetStatus is the state of an installation.
type InstallationTargetStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
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
	// message says why status is Failed.
	// +optional
	Message string `json:"message,omitempty"`
	// conditions, sorted by type: Operational, Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// clusterScoped reports the installed objects without a namespace, except Namespaces and CustomResourceDefinitions. Shipper lists
	// them in a ConfigMap in shipper-system of the cluster, and reads this field only where that is missing.
	// +optional
	// +listType=atomic
	ClusterScoped []ClusterScopedObject `json:"clusterScoped,omitempty"`
	// objects sums up the health of the objects that this target wrote in the cluster, without those that another Release has taken
	// over. Absent until the first observation. While the cluster cannot be reached, it is the last observation.
	// +optional
	Objects *InstalledObjects `json:"objects,omitempty"`
	// drift says how the objects that this target wrote differ from what was released. Absent when they do not differ, and where
	// the Application's driftPolicy is Ignore. While the cluster cannot be reached, it is the last observation.
	// +optional
	Drift *InstalledDrift `json:"drift,omitempty"`
	// diff says how objects that are not the Application's differ from the manifests they would be written from: those that takeOver left
	// alone and, with ReportDiff, all. Absent when there are none.
	// +optional
	Diff *InstalledDrift `json:"diff,omitempty"`
	// hooks of the chart that were started in the cluster, in that order, each with its last run, and those that run when the Application
	// is deleted. Absent when there are none.
	// +optional
	// +listType=atomic
	Hooks []HookRun `json:"hooks,omitempty"`
	// test is the last run of the chart's tests in the cluster. Absent until a run is requested.
	// +optional
	Test *TestRun `json:"test,omitempty"`
	// checkTests are the runs of the chart's tests that the Checks of the Release's step asked for. Absent where none did.
	// +optional
	// +listType=map
	// +listMapKey=request
	// +kubebuilder:validation:MaxItems=20
	CheckTests []TestRun `json:"checkTests,omitempty"`
}

// InstalledDrift says how objects differ from what was released. Its size is bounded.
type InstalledDrift struct {
	// objects is the number of objects that differ.
	Objects int32 `json:"objects"`
	// fields that differ, 20 at most.
	// +optional
	// +listType=atomic
	Fields []DriftedField `json:"fields,omitempty"`
	// omitted is the number of further fields that differ.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
	// message names the objects that could not be compared, and the reason.
	// +optional
	Message string `json:"message,omitempty"`
}

// DriftedField is a field of an object that differs from what was released.
type DriftedField struct {
	// apiVersion is the object's group and version.
	APIVersion string `json:"apiVersion"`
	// kind is its kind.
	Kind string `json:"kind"`
	// namespace is that of the object, where it is not the target's.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is its name.
	Name string `json:"name"`
	// field is its path, with names for elements of lists: spec.template.spec.containers[name=app].image.
	Field string `json:"field"`
	// want is the released value as JSON, at most 128 bytes of it; empty when the field was not released.
	// +optional
	Want string `json:"want,omitempty"`
	// have is the value in the cluster; empty when the field is missing there.
	// +optional
	Have string `json:"have,omitempty"`
	// hidden is true for Secrets: want and have are left out.
	// +optional
	Hidden bool `json:"hidden,omitempty"`
	// manager is the field manager that wrote the value, as named in managedFields; empty when it is not known.
	// +optional
	Manager string `json:"manager,omitempty"`
	// since is when that manager last wrote the object, as in managedFields: the field differs since then at the latest. Absent when the
	// manager is not known.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// InstalledObjects sums up the health of objects, as computed by kstatus. Its size is bounded.
type InstalledObjects struct {
	// total is the number of objects that should exist.
	Total int32 `json:"total"`
	// healthy is the number of objects that exist and are healthy.
	Healthy int32 `json:"healthy"`
	// kinds has both numbers for each kind, sorted by kind; 50 at most.
	// +optional
	// +listType=atomic
	Kinds []InstalledKind `json:"kinds,omitempty"`
	// unhealthy names objects that are not healthy, failed ones first; 10 at most.
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
	// total is the number of objects that should exist.
	Total int32 `json:"total"`
	// healthy is the number of them that are healthy.
	Healthy int32 `json:"healthy"`
}

// UnhealthyObject is an object that is not healthy.
type UnhealthyObject struct {
	// apiVersion is its group and version.
	APIVersion string `json:"apiVersion"`
	// kind is its kind.
	Kind string `json:"kind"`
	// namespace is that of the object, where it is not the target's.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is its name.
	Name string `json:"name"`
	// status is InProgress, Failed, Terminating, NotFound or Unknown.
	Status string `json:"status"`
	// reason is one word, from kstatus or the object's own condition Ready.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message describes the failure, when status is Failed.
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
	// uid of the object, which an object created later with the same name does not have.
	UID types.UID `json:"uid"`
	// digest of the manifest it was written from, as in its annotation shipper.booking.com/installed-digest.
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
