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
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=`.status.summary.step`
// +kubebuilder:printcolumn:name="Rolling Out",type=string,JSONPath=`.status.conditions[?(@.type=='RollingOut')].status`
// +kubebuilder:printcolumn:name="Blocked",type=string,JSONPath=`.status.conditions[?(@.type=='Blocked')].status`
// +kubebuilder:printcolumn:name="Health",type=string,JSONPath=`.status.summary.health`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.template.chart.version`
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

	// rollbackTo puts the environment of an earlier Release into template when the Application is admitted, and is gone then.
	// Absent means no rollback; {} one to the newest Release before the current one that completed. What was rolled back
	// already, and not edited since, stays as it is when the same is asked for again, or {} is. The original had no such field.
	// +optional
	RollbackTo *RollbackTo `json:"rollbackTo,omitempty"`

	// driftPolicy says what is to be done when somebody has changed, in an application cluster, what a Release installed there.
	// Absent means Report of fields that somebody has written; what was only taken away is not noticed then. It is no part of a
	// Release: a change of it makes none. A RolloutBlock stops that change, as any of the spec, and not what is corrected. The
	// original had no such field.
	// +optional
	DriftPolicy DriftPolicy `json:"driftPolicy,omitempty"`

	// template is the mold of the next Release's environment.
	Template ReleaseEnvironment `json:"template"`
}

// DriftPolicy says what is to be done about drift.
// +kubebuilder:validation:Enum=Ignore;Report;Correct
type DriftPolicy string

// The policies of drift.
const (
	// DriftIgnore leaves alone what others change, as long as the object is there.
	DriftIgnore DriftPolicy = "Ignore"
	// DriftReport tells of it, field by field, in the status of InstallationTargets.
	DriftReport DriftPolicy = "Report"
	// DriftCorrect writes the object again as it was released.
	DriftCorrect DriftPolicy = "Correct"
)

// RollbackStrategy says by which steps a rollback goes.
// +kubebuilder:validation:Enum=Steps;Immediate
type RollbackStrategy string

// The strategies of rollbacks.
const (
	// RollbackSteps goes through the steps of the Release that is gone back to, one by one, as when it was first rolled out.
	RollbackSteps RollbackStrategy = "Steps"
	// RollbackImmediate asks for its last step at once.
	RollbackImmediate RollbackStrategy = "Immediate"
)

// RollbackTo says which Release to go back to, by its name or its generation, and how.
// +kubebuilder:validation:XValidation:rule="!(has(self.release) && has(self.generation) && self.generation != 0)",message="name the release or its generation, not both"
type RollbackTo struct {
	// release is the name of a Release of this Application.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Release string `json:"release,omitempty"`

	// generation is that of a Release of this Application: the number in its annotation
	// shipper.booking.com/release.generation. Absent and 0 mean the newest Release before the current one that completed; the
	// Release of generation 0 is named.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Generation int64 `json:"generation,omitempty"`

	// strategy is Steps or Immediate. Absent means Steps.
	// +optional
	Strategy RollbackStrategy `json:"strategy,omitempty"`
}

// ApplicationStatus is what Shipper has observed of an Application.
type ApplicationStatus struct {
	// observedGeneration is the metadata.generation this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions, sorted by type: Aborting, Blocked, ReleaseSynced, RolledBack, RollingOut, ValidHistory.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`

	// history names the Releases of this Application, oldest first.
	// +optional
	// +listType=atomic
	History []string `json:"history,omitempty"`

	// summary is how far the newest Release is, for kubectl. Absent: there is no Release.
	// +optional
	Summary *ApplicationSummary `json:"summary,omitempty"`
}

// ApplicationSummary is how far the newest Release of an Application is.
type ApplicationSummary struct {
	// step is the step that the Release achieved: its number, that of the last one, and its name, as `1/2 50/50`. Numbers are those of
	// targetStep, from 0. Absent: it has achieved none.
	// +optional
	Step string `json:"step,omitempty"`

	// health is how the objects of the Release are, in all clusters, as its condition Healthy says: Healthy; Progressing, while they
	// change; Degraded, when they are not as they should be; Unknown. Absent: nothing is known of them yet.
	// +optional
	Health ApplicationHealth `json:"health,omitempty"`
}

// ApplicationHealth is how the objects of an Application's newest Release are.
// +kubebuilder:validation:Enum=Healthy;Progressing;Degraded;Unknown
type ApplicationHealth string

// What objects may be.
const (
	ApplicationHealthy       ApplicationHealth = "Healthy"
	ApplicationProgressing   ApplicationHealth = "Progressing"
	ApplicationDegraded      ApplicationHealth = "Degraded"
	ApplicationHealthUnknown ApplicationHealth = "Unknown"
)

// ApplicationList is a list of Applications.
//
// +kubebuilder:object:root=true
type ApplicationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Application `json:"items"`
}
