// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Bounds and default of Application.spec.revisionHistoryLimit.
const (
	DefaultRevisionHistoryLimit int32 = 20
	MinRevisionHistoryLimit     int32 = 1
	MaxRevisionHistoryLimit     int32 = 1000
)

// Application describes what a developer wants to run: a chart, values, clusters, and the steps by which changes are rolled
// out. Every edit of spec.template creates a Release.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=applications,shortName=app,categories={all,shipper}
// +kubebuilder:printcolumn:name="Latest Release",type=string,JSONPath=`.status.history[-1]`
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=`.status.summary.step`
// +kubebuilder:printcolumn:name="Rolling Out",type=string,JSONPath=`.status.conditions[?(@.type=='RollingOut')].status`
// +kubebuilder:printcolumn:name="Blocked",type=string,JSONPath=`.status.conditions[?(@.type=='Blocked')].status`
// +kubebuilder:printcolumn:name="Failed",type=string,JSONPath=`.status.conditions[?(@.type=='Failed')].status`
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

	// rollbackTo requests a rollback: the webhook copies the environment of an earlier Release into template and removes this field.
	// Absent means no rollback; {} selects the newest complete Release before the current one. The same request again, or {}, does
	// nothing until the template is edited. The original had no such field.
	// +optional
	RollbackTo *RollbackTo `json:"rollbackTo,omitempty"`

	// driftPolicy says what Shipper does when a user or a program changes installed objects in an application cluster; it creates
	// deleted ones again in any case. Ignore: nothing. Report: the status of InstallationTargets lists the fields that were changed or
	// removed. Correct: the object is applied again as it was released, and an Event reports it. Halt: as Report, and an edited object of
	// resources is left alone until the next Release writes it, with the reason DriftFound; with a chart Halt is the same as Report.
	// Absent means Report, but only of fields with a new value, not of removed ones. It is not part of a Release: changing it creates
	// none. RolloutBlocks stop changes of this field, but not the corrections. The original had no such field.
	// +optional
	DriftPolicy DriftPolicy `json:"driftPolicy,omitempty"`

	// template is the environment of the next Release.
	// +kubebuilder:validation:XValidation:rule="!has(self.resourcesDigest)",message="Shipper writes it in Releases: leave it out",fieldPath=".resourcesDigest",reason=FieldValueForbidden
	// +kubebuilder:validation:XValidation:rule="!has(self.strategy.from) || !(has(self.strategy.steps) || has(self.strategy.previewWhenIdle) || has(self.strategy.firstRelease) || has(self.strategy.progressDeadline) || has(self.strategy.onFailure) || has(self.strategy.checks) || has(self.strategy.rolling) || has(self.strategy.unavailablePeriod) || has(self.strategy.waves) || has(self.strategy.advance) || has(self.strategy.maxFailures))",message="not beside other fields of strategy: keep from alone, or take it out",fieldPath=".strategy.from",reason=FieldValueForbidden
	Template ReleaseEnvironment `json:"template"`
}

// DriftPolicy says what Shipper does about drift.
// +kubebuilder:validation:Enum=Ignore;Report;Correct;Halt
type DriftPolicy string

// The policies of drift.
const (
	// DriftIgnore accepts changes by others, as long as the object exists.
	DriftIgnore DriftPolicy = "Ignore"
	// DriftReport lists the changed fields in the status of InstallationTargets.
	DriftReport DriftPolicy = "Report"
	// DriftCorrect applies the object again as it was released.
	DriftCorrect DriftPolicy = "Correct"
	// DriftHalt reports the changed fields and leaves an object of resources alone until the next Release writes it.
	DriftHalt DriftPolicy = "Halt"
)

// RollbackStrategy says which steps a rollback takes.
// +kubebuilder:validation:Enum=Steps;Immediate
type RollbackStrategy string

// The strategies of rollbacks.
const (
	// RollbackSteps starts at the first step of the restored environment, as a new rollout does.
	RollbackSteps RollbackStrategy = "Steps"
	// RollbackImmediate sets targetStep to the last step at once.
	RollbackImmediate RollbackStrategy = "Immediate"
)

// RollbackTo says which Release to go back to, by its name or its generation, and how.
// +kubebuilder:validation:XValidation:rule="!(has(self.release) && has(self.generation) && self.generation != 0)",message="name the release or its generation, not both"
type RollbackTo struct {
	// release is the name of a Release of this Application.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Release string `json:"release,omitempty"`

	// generation selects a Release of this Application by the number in its annotation shipper.booking.com/release.generation.
	// Absent and 0 mean the newest complete Release before the current one; to select the Release of generation 0, use its name.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Generation int64 `json:"generation,omitempty"`

	// strategy is Steps or Immediate. Absent means Steps.
	// +optional
	Strategy RollbackStrategy `json:"strategy,omitempty"`
}

// ApplicationStatus is what Shipper has observed of an Application.
type ApplicationStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions, sorted by type: Aborting, Blocked, Deleting, Failed, ReleaseSynced, ResourcesSelected, RolledBack, RollingOut, ValidHistory.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`

	// history names the Releases of this Application, oldest first.
	// +optional
	// +listType=atomic
	History []string `json:"history,omitempty"`

	// resources is the content of template.resources that was taken last. Absent: none was taken yet, or a chart is installed. The original
	// had no such field.
	// +optional
	Resources *TakenResources `json:"resources,omitempty"`

	// summary is the progress of the newest Release, for the columns of kubectl. Absent: there is no Release.
	// +optional
	Summary *ApplicationSummary `json:"summary,omitempty"`
}

// ApplicationSummary is the progress of an Application's newest Release.
type ApplicationSummary struct {
	// step is the step that the Release achieved: its number, the number of the last step, and its name, as `1/2 50/50`. Numbers are
	// those of targetStep, from 0. Absent: it has achieved none.
	// +optional
	Step string `json:"step,omitempty"`

	// health sums up the objects of the Release in all clusters, from its condition Healthy: Healthy; Progressing, while controllers
	// work on them; Degraded, when objects are not healthy; Unknown. Absent: no cluster has reported yet.
	// +optional
	Health ApplicationHealth `json:"health,omitempty"`
}

// ApplicationHealth is the health of the objects of an Application's newest Release.
// +kubebuilder:validation:Enum=Healthy;Progressing;Degraded;Unknown
type ApplicationHealth string

// The values of ApplicationHealth.
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
