// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Bounds and default of Application.spec.revisionHistoryLimit.
const (
	DefaultRevisionHistoryLimit int32 = 20
	MinRevisionHistoryLimit     int32 = 1
	MaxRevisionHistoryLimit     int32 = 1000
)

// Application is what a developer applies: a chart, values, where to run it and the steps by which a change of any of
// these is rolled out. Every edit of spec.template makes a Release.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=applications,shortName=app,categories={all,shipper}
// +kubebuilder:printcolumn:name="Latest Release",type=string,JSONPath=`.status.history[-1]`
// +kubebuilder:printcolumn:name="Rolling Out",type=string,JSONPath=`.status.conditions[?(@.type=='RollingOut')].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Application struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants.
	Spec ApplicationSpec `json:"spec"`

	// status is what Shipper has observed. Written by the reconciler.
	// +optional
	Status ApplicationStatus `json:"status,omitempty"`
}

// ApplicationSpec is what the user wants to run.
type ApplicationSpec struct {
	// revisionHistoryLimit is the number of complete Releases kept besides the newest one, from 1 to 1000.
	// Absent means 20; a value outside the bounds is moved to the nearest one when the object is admitted.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// template is the mold of the next Release's environment.
	Template ReleaseEnvironment `json:"template"`
}

// ApplicationStatus is what Shipper has observed of an Application.
type ApplicationStatus struct {
	// observedGeneration is the metadata.generation this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions, sorted by type: Aborting, Blocked, ReleaseSynced, RollingOut, ValidHistory.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`

	// history names the Releases of this Application, oldest first.
	// +optional
	// +listType=atomic
	History []string `json:"history,omitempty"`
}

// ApplicationList is a list of Applications.
//
// +kubebuilder:object:root=true
type ApplicationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Application `json:"items"`
}
