// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SequenceRun is one sequence of one stage of a Shipyard, run for one service. Users create it; Shipper does its tasks, and creates the
// runs that its end triggers. A finished run never runs again: a retry is a new one.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=sequenceruns,shortName=sr,categories={shipper}
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.spec.stage`
// +kubebuilder:printcolumn:name="Sequence",type=string,JSONPath=`.spec.sequence`
// +kubebuilder:printcolumn:name="Service",type=string,JSONPath=`.spec.service`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.resolved.version.version`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[?(@.type=="Finished")].reason`
// +kubebuilder:printcolumn:name="Task",type=string,JSONPath=`.status.task`
// +kubebuilder:printcolumn:name="Result",type=string,JSONPath=`.status.result`
// +kubebuilder:printcolumn:name="By",type=string,priority=1,JSONPath=`.spec.requestedBy.username`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SequenceRun struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what a user requests. Only hold and abort can be changed.
	// +kubebuilder:validation:XValidation:rule="has(self.stage) == has(oldSelf.stage) && has(self.sequence) == has(oldSelf.sequence) && has(self.service) == has(oldSelf.service) && has(self.data) == has(oldSelf.data) && has(self.retryOf) == has(oldSelf.retryOf) && has(self.skipRequires) == has(oldSelf.skipRequires) && has(self.requestedBy) == has(oldSelf.requestedBy)",message="only hold and abort can be changed"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.abort) || has(self.abort) && self.abort == oldSelf.abort",message="a run that was aborted stays aborted: create another with retryOf",fieldPath=".abort"
	Spec SequenceRunSpec `json:"spec"`

	// status is written by Shipper.
	// +optional
	Status SequenceRunStatus `json:"status,omitempty"`
}

// SequenceRunSpec says what is run.
type SequenceRunSpec struct {
	// shipyard of this namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only hold and abort can be changed"
	Shipyard string `json:"shipyard"`

	// stage of the Shipyard. Default: the first, or that of retryOf.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only hold and abort can be changed"
	Stage string `json:"stage,omitempty"`

	// sequence of the stage. Default: its only one, or that of retryOf.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only hold and abort can be changed"
	Sequence string `json:"sequence,omitempty"`

	// service that is delivered. Default: the Shipyard's only one, or that of retryOf.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only hold and abort can be changed"
	Service string `json:"service,omitempty"`

	// data that the first task gets, at most 256 KiB. data.deployment.version is the version of the chart that is delivered, or a constraint.
	// Default: the constraint of the Application of the stage, which may be the version that it has. Leave it out with retryOf. project, stage,
	// service, status, result, message, labels and earlier are reserved.
	// +optional
	// +mapType=atomic
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only hold and abort can be changed"
	Data FreeForm `json:"data,omitempty"`

	// hold is the reason why no further task begins. The current one ends. Absent: not held.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Hold string `json:"hold,omitempty"`

	// abort is the reason why the run ends now. It cannot be undone. The Release stays: if the run held it
	// for a task release, it keeps that hold, else steps with after go on.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Abort string `json:"abort,omitempty"`

	// retryOf is the finished run that this one repeats. A run may be repeated several times, but its approvals are used up by the first
	// retry that begins with a task after one: status.repeatedBy of the finished run.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only hold and abort can be changed"
	RetryOf *RetryOf `json:"retryOf,omitempty"`

	// skipRequires runs a version that lacks what the stage requires. It needs the verb override on shipyards/STAGE, or on shipyards.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only hold and abort can be changed"
	SkipRequires *SkipRequires `json:"skipRequires,omitempty"`

	// requestedBy is the user who created the run, or the first run of its delivery. Written by Shipper: leave it out.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only hold and abort can be changed"
	RequestedBy ApprovalUser `json:"requestedBy,omitzero"`
}

// RetryOf names a run that is repeated: it has finished, and not passed unless from is given. The new run has its stage, sequence, service,
// data, context and version, and does the same tasks.
type RetryOf struct {
	// run is its name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Run string `json:"run"`
	// from is the task to begin with; test#2 is the second test. Absent: the first. The tasks before it keep their results.
	// +optional
	// +kubebuilder:validation:MaxLength=70
	From string `json:"from,omitempty"`
}

// SkipRequires overrides what a stage requires.
type SkipRequires struct {
	// reason is for others to read.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason"`
}

// RunTrigger is what started a run.
type RunTrigger struct {
	// event, such as staging.delivery.finished.
	// +kubebuilder:validation:MaxLength=200
	Event string `json:"event"`
	// run that finished.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Run string `json:"run,omitempty"`
	// depth is how many triggers lead here from the run that a user created: 1 for a run that follows from that one, or from a retry. A run
	// that is too deep is refused, so that circles of triggers end.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Depth int32 `json:"depth,omitempty"`
	// time of the event.
	Time metav1.Time `json:"time"`
}

// RunVersion is a version of a chart.
type RunVersion struct {
	// name of the chart.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// version of the chart.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`
	// digest of the archive, a sha256 in hexadecimal; empty if it was not known.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest,omitempty"`
}

// ResolvedRun is what a run does. All runs of a delivery do what the Shipyard said when the first of them was resolved.
type ResolvedRun struct {
	// revision of the Shipyard.
	Revision ShipyardRevision `json:"revision"`
	// serviceAccountName with whose rights tasks write.
	ServiceAccountName string `json:"serviceAccountName"`
	// stage of the run, without its sequences.
	Stage Stage `json:"stage"`
	// sequence of the run.
	Sequence Sequence `json:"sequence"`
	// version that is delivered. Absent if the sequence has no task deployment.
	// +optional
	Version RunVersion `json:"version,omitzero"`
	// context identifies a delivery: the uid of its first run, which all runs that follow from it or repeat it have.
	Context string `json:"context"`
	// earlierRequesters are the users who requested the runs that this one repeats, the newest first: they cannot approve it either.
	// +optional
	// +listType=atomic
	EarlierRequesters []string `json:"earlierRequesters,omitempty"`
	// triggeredBy is what started the run, if no user did.
	// +optional
	TriggeredBy *RunTrigger `json:"triggeredBy,omitempty"`
	// retryOfUID is the uid of the run that is repeated.
	// +optional
	RetryOfUID string `json:"retryOfUID,omitempty"`
	// data that a retry begins with: that of the run that it repeats.
	// +optional
	// +mapType=atomic
	Data FreeForm `json:"data,omitempty"`
}

// ShipyardRevision is a Shipyard at a time.
type ShipyardRevision struct {
	// uid of the Shipyard.
	UID string `json:"uid"`
	// generation of it.
	Generation int64 `json:"generation"`
	// name of the ControllerRevision with its stages, which all runs of the revision share.
	Name string `json:"name"`
	// digest of these stages, a sha256 in hexadecimal.
	Digest string `json:"digest"`
}

// ShipyardSnapshot is what a ControllerRevision of a Shipyard has.
type ShipyardSnapshot struct {
	// serviceAccountName with whose rights tasks write.
	ServiceAccountName string `json:"serviceAccountName"`
	// stages of it.
	// +listType=atomic
	Stages []Stage `json:"stages"`
}

// Result is how a task or a run ended.
// +kubebuilder:validation:Enum=pass;warning;fail
type Result string

// The values of Result, Keptn's.
const (
	ResultPass    Result = "pass"
	ResultWarning Result = "warning"
	ResultFail    Result = "fail"
)

// Completion says whether a task or a run was done to its end.
// +kubebuilder:validation:Enum=succeeded;errored;unknown;aborted
type Completion string

// The values of Completion, those of Keptn's status.
const (
	CompletionSucceeded Completion = "succeeded"
	CompletionErrored   Completion = "errored"
	CompletionUnknown   Completion = "unknown"
	CompletionAborted   Completion = "aborted"
)

// SequenceRunStatus is how far a run is.
type SequenceRunStatus struct {
	// observedGeneration is the generation that the status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// order is the position of the run among those of its Shipyard, stage and service, in order of creation; at least 1. Absent: not decided
	// yet, or resolved by an earlier version, which counts as before all others.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Order int64 `json:"order,omitempty"`
	// resolved is what the run does, which is decided once. Absent until then, and if the run was refused.
	// +optional
	Resolved *ResolvedRun `json:"resolved,omitempty"`
	// result of the run. Absent until it is finished.
	// +optional
	Result Result `json:"result,omitempty"`
	// completion of the run. Absent until it is finished.
	// +optional
	Completion Completion `json:"completion,omitempty"`
	// message explains both.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// task that is under way.
	// +optional
	Task string `json:"task,omitempty"`
	// startTime is when the run became the first of its queue.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// finishTime is when it ended.
	// +optional
	FinishTime *metav1.Time `json:"finishTime,omitempty"`
	// pausedSeconds is how long the clocks of the run have stood so far.
	// +optional
	PausedSeconds int64 `json:"pausedSeconds,omitempty"`
	// pausedSince is when the clocks were stopped. Absent: they run.
	// +optional
	PausedSince *metav1.Time `json:"pausedSince,omitempty"`
	// behind is the run directly ahead in the queue. Absent: none.
	// +optional
	Behind string `json:"behind,omitempty"`
	// data that the next task gets, at most 256 KiB.
	// +optional
	// +mapType=atomic
	Data FreeForm `json:"data,omitempty"`
	// tasks that were begun or skipped, in order.
	// +optional
	// +listType=atomic
	Tasks []TaskStatus `json:"tasks,omitempty"`
	// triggered are the runs that follow from the end of this one, written before they are created.
	// +optional
	// +listType=atomic
	Triggered []TriggeredRun `json:"triggered,omitempty"`
	// repeatedBy is the retry (a run whose spec.retryOf names this one) that began with a task after an approval of this run. Another such
	// retry is refused, also when that one was deleted; one that begins with the approval or before it is not. Absent: none.
	// +optional
	RepeatedBy *RepeatedBy `json:"repeatedBy,omitempty"`
	// conditions: Finished, Failed, Blocked.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
}

// TaskState is how far a task is.
type TaskState string

// The values of TaskState.
const (
	// TaskDelayed waits for triggeredAfter.
	TaskDelayed TaskState = "Delayed"
	// TaskTriggered is under way.
	TaskTriggered TaskState = "Triggered"
	// TaskWaiting waits for approvals.
	TaskWaiting TaskState = "Waiting"
	// TaskFinished has a result.
	TaskFinished TaskState = "Finished"
	// TaskSkipped was not for the results of the tasks before it.
	TaskSkipped TaskState = "Skipped"
	// TaskCarried has the result of the run that this one repeats.
	TaskCarried TaskState = "Carried"
)

// TaskStatus is how far a task is.
type TaskStatus struct {
	// name of the task.
	Name string `json:"name"`
	// ordinal counts tasks of this name in the sequence, from 1.
	Ordinal int32 `json:"ordinal"`
	// state of the task.
	State TaskState `json:"state"`
	// result, once it is finished.
	// +optional
	Result Result `json:"result,omitempty"`
	// completion, once it is finished.
	// +optional
	Completion Completion `json:"completion,omitempty"`
	// message explains state and result.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// eventID identifies this attempt at the task.
	// +optional
	EventID string `json:"eventID,omitempty"`
	// triggerTime is when the task began, or was delayed.
	// +optional
	TriggerTime *metav1.Time `json:"triggerTime,omitempty"`
	// finishTime is when it ended.
	// +optional
	FinishTime *metav1.Time `json:"finishTime,omitempty"`
	// pausedBefore is how long the clocks of the run had stood when the task began, in seconds.
	// +optional
	PausedBefore int64 `json:"pausedBefore,omitempty"`
	// release that the task made, or acts on, as NAMESPACE/NAME.
	// +optional
	Release string `json:"release,omitempty"`
	// generation of the Application that the task wrote. Absent: it wrote none.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// subject of a task approval is a digest of what it is about, from when it waits: the version and the values that would be deployed.
	// +optional
	Subject string `json:"subject,omitempty"`
	// approvals that were counted.
	// +optional
	// +listType=atomic
	Approvals []CountedApproval `json:"approvals,omitempty"`
}

// CountedApproval is an Approval that counted.
type CountedApproval struct {
	// by is who gave it.
	By string `json:"by"`
	// decision of it.
	Decision ApprovalDecision `json:"decision"`
	// time of its creation.
	Time metav1.Time `json:"time"`
}

// TriggeredRun is a run that follows from the end of another one.
type TriggeredRun struct {
	// name of the run.
	Name string `json:"name"`
	// stage of the run.
	Stage string `json:"stage"`
	// sequence of the run.
	Sequence string `json:"sequence"`
	// event that it follows from.
	Event string `json:"event"`
	// takesBack is true if the run has a task rollback.
	// +optional
	TakesBack bool `json:"takesBack,omitempty"`
	// createTime is when the run was created. Absent: it was not.
	// +optional
	CreateTime *metav1.Time `json:"createTime,omitempty"`
	// refused is true if the run was refused and is not tried again.
	// +optional
	Refused bool `json:"refused,omitempty"`
	// message says why the run was not created: what its stage requires, or why it was refused.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// SequenceRunList is a list of SequenceRuns.
//
// +kubebuilder:object:root=true
type SequenceRunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SequenceRun `json:"items"`
}
