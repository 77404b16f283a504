// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Release is one version of an Application as it was admitted: a chart pinned to a version and a digest, values, clusters
// and a strategy. Users move it between the steps of its strategy with spec.targetStep; the rest does not change.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=releases,shortName=rel,categories={all,shipper}
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Generation",type=string,JSONPath=`.metadata.annotations.shipper\.booking\.com/release\.generation`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.environment.chart.version`
// +kubebuilder:printcolumn:name="Outcome",type=string,JSONPath=`.status.summary.outcome`
// +kubebuilder:printcolumn:name="Achieved Step",type=string,JSONPath=`.status.achievedStep.name`
// +kubebuilder:printcolumn:name="Clusters",type=string,JSONPath=`.metadata.annotations.shipper\.booking\.com/release\.clusters`
// +kubebuilder:printcolumn:name="Waiting",type=string,JSONPath=`.status.summary.waiting`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.summary.message`
// +kubebuilder:printcolumn:name="Duration",type=string,priority=1,JSONPath=`.status.summary.duration`
// +kubebuilder:printcolumn:name="Chart",type=string,priority=1,JSONPath=`.spec.environment.chart.name`
// +kubebuilder:printcolumn:name="Digest",type=string,priority=1,JSONPath=`.metadata.annotations.shipper\.booking\.com/release\.chart\.digest`
// +kubebuilder:printcolumn:name="Values Changed",type=string,priority=1,JSONPath=`.status.summary.valuesChanged`
// +kubebuilder:printcolumn:name="Requested By",type=string,priority=1,JSONPath=`.metadata.annotations.shipper\.booking\.com/release\.requested-by`
// +kubebuilder:printcolumn:name="Override Reason",type=string,priority=1,JSONPath=`.status.summary.overrideReason`
type Release struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the admitted environment and the step to be at.
	Spec ReleaseSpec `json:"spec"`

	// status is how far the rollout is. Written by the reconciler.
	// +optional
	Status ReleaseStatus `json:"status,omitempty"`
}

// ReleaseSpec is an environment and the step of its strategy to converge on.
type ReleaseSpec struct {
	// targetStep is the index, from 0, of the strategy's step to be at. Raise it to advance, lower it to retreat; steps may be
	// skipped. It must be below the number of steps.
	// +kubebuilder:validation:Minimum=0
	TargetStep int32 `json:"targetStep"`

	// environment is the Application's template as it was admitted, the chart's version resolved. It does not change.
	Environment ReleaseEnvironment `json:"environment"`
}

// ReleaseStatus is how far a Release is.
type ReleaseStatus struct {
	// observedGeneration is the metadata.generation this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// achievedStep is the step completed last; absent until the first is.
	// +optional
	AchievedStep *AchievedStep `json:"achievedStep,omitempty"`

	// strategy tells what the current step waits for.
	// +optional
	Strategy *ReleaseStrategyStatus `json:"strategy,omitempty"`

	// summary sums the Release up for who looks at the history of an Application. Absent until the reconciler has seen it.
	// +optional
	Summary *ReleaseSummary `json:"summary,omitempty"`

	// conditions, sorted by type: Blocked, Complete, Healthy, Scheduled, StrategyExecuted, and those that others own, which readinessGates
	// may name; Shipper leaves them as they are.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
}

// ReleaseSummary is what a Release comes to among those of its Application.
type ReleaseSummary struct {
	// outcome is InProgress of the newest until it completes; Complete; RolledBack, when it was complete and a rollback to
	// another environment came next; or Superseded, when it never completed and its place is taken.
	Outcome ReleaseOutcome `json:"outcome"`

	// duration is how long it took from its creation until it completed, in hours, minutes and whole seconds, as 1h4m10s.
	// Absent until then, and where it is not known because the Release was restored from a backup that did not say it.
	// +optional
	Duration string `json:"duration,omitempty"`

	// valuesChanged are the keys of values that are not as in the Release before, separated by commas, those of maps within
	// maps joined by dots: keys only. Of those that make more than 256 characters it says how many there are besides. Absent
	// when there are none, or there is no Release before.
	// +optional
	ValuesChanged string `json:"valuesChanged,omitempty"`

	// override is which RolloutBlocks it overrides, or did: `namespace/name`, comma-separated. It stays when they are gone, which
	// takes them out of the annotation. Absent: none, ever.
	// +optional
	Override string `json:"override,omitempty"`

	// overrideReason is why, as it was said; of a longer text the first 256 characters. Absent: nobody said.
	// +optional
	OverrideReason string `json:"overrideReason,omitempty"`

	// waiting is the type of the condition that the Release waits for: Scheduled, or the first False one of status.strategy.conditions.
	// Absent: it waits for none.
	// +optional
	Waiting string `json:"waiting,omitempty"`

	// message is that of the condition in waiting, at most 1024 characters. Absent: it waits for none.
	// +optional
	Message string `json:"message,omitempty"`
}

// ReleaseOutcome is what has become of a Release.
// +kubebuilder:validation:Enum=InProgress;Complete;RolledBack;Superseded
type ReleaseOutcome string

// The outcomes of Releases.
const (
	ReleaseInProgress ReleaseOutcome = "InProgress"
	ReleaseCompleted  ReleaseOutcome = "Complete"
	ReleaseRolledBack ReleaseOutcome = "RolledBack"
	ReleaseSuperseded ReleaseOutcome = "Superseded"
)

// AchievedStep is a step of a strategy that was reached.
type AchievedStep struct {
	// step is the index of the step, from 0.
	Step int32 `json:"step"`
	// name is the step's name.
	Name string `json:"name"`
}

// ReleaseStrategyStatus is the state of the step a Release is moving to.
type ReleaseStrategyStatus struct {
	// state sums the conditions up: what is awaited now.
	// +optional
	State ReleaseStrategyState `json:"state,omitempty"`

	// conditions, sorted by type, say of each side whether it is as the step wants it.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []ReleaseStrategyCondition `json:"conditions,omitempty"`
}

// ReleaseStrategyState says what a rollout waits for: "True", "False" or "Unknown" each.
type ReleaseStrategyState struct {
	// waitingForInstallation is True while the chart is not installed in every cluster.
	WaitingForInstallation StrategyState `json:"waitingForInstallation"`
	// waitingForCapacity is True while a side does not have the step's number of available Pods.
	WaitingForCapacity StrategyState `json:"waitingForCapacity"`
	// waitingForTraffic is True while a side does not have the step's share of traffic.
	WaitingForTraffic StrategyState `json:"waitingForTraffic"`
	// waitingForCommand is True when the step is achieved, it is not the last, and targetStep is awaited.
	WaitingForCommand StrategyState `json:"waitingForCommand"`
	// waitingForReadiness is True while all else of the step is achieved and a condition that its readinessGates name is not
	// True. Absent where the step names none. The original had no such field.
	// +optional
	WaitingForReadiness StrategyState `json:"waitingForReadiness,omitempty"`
}

// StrategyState is "True", "False" or "Unknown".
type StrategyState string

// The values of StrategyState.
const (
	StrategyStateTrue    StrategyState = "True"
	StrategyStateFalse   StrategyState = "False"
	StrategyStateUnknown StrategyState = "Unknown"
)

// ReleaseStrategyCondition is a Condition that speaks of one step.
type ReleaseStrategyCondition struct {
	Condition `json:",inline"`

	// step is the index of the step this condition speaks of.
	// +optional
	Step int32 `json:"step,omitempty"`
}

// ReleaseList is a list of Releases.
//
// +kubebuilder:object:root=true
type ReleaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Release `json:"items"`
}
