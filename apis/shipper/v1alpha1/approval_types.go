// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Approval is one user's decision about a step of a Release whose gate asks for approvals, about the beginning or the end of a wave whose
// tasks ask for them, or about a task approval of a SequenceRun: the user approves or rejects it. It counts until the Release is moved,
// the task has ended, or the Approval is deleted. Shipper writes who created it; no field of it can be changed.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=approvals,shortName=appr,categories={shipper}
// +kubebuilder:printcolumn:name="Release",type=string,JSONPath=`.spec.release`
// +kubebuilder:printcolumn:name="Step",type=integer,JSONPath=`.spec.step`
// +kubebuilder:printcolumn:name="Wave",type=integer,JSONPath=`.spec.wave`
// +kubebuilder:printcolumn:name="Run",type=string,JSONPath=`.spec.run`
// +kubebuilder:printcolumn:name="Task",type=string,JSONPath=`.spec.task`
// +kubebuilder:printcolumn:name="Decision",type=string,JSONPath=`.spec.decision`
// +kubebuilder:printcolumn:name="By",type=string,JSONPath=`.spec.by.username`
// +kubebuilder:printcolumn:name="Counted",type=string,JSONPath=`.status.conditions[?(@.type=="Counted")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Approval struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is approved or rejected.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an Approval cannot be changed: delete it, and create another"
	Spec ApprovalSpec `json:"spec"`

	// status is written by Shipper, for an Approval of a run. Which Approvals of a Release count is in its status.progress.approvals.
	// +optional
	Status ApprovalStatus `json:"status,omitzero"`
}

// ApprovalSpec names the step, the wave or the task that a user approves or rejects.
//
// +kubebuilder:validation:XValidation:rule="has(self.run) ? !has(self.release) && !has(self.step) && !has(self.wave) : has(self.release) && has(self.step) && (!has(self.task) || self.task == 'Before')",message="set exactly one of release with step, and run; of a release, the only task is Before"
type ApprovalSpec struct {
	// release is the name of a Release of this namespace.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Release string `json:"release,omitempty"`

	// step is the index, from 0, of the step: the one in targetStep. Of a wave it is the step at which the wave waits.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Step *int32 `json:"step,omitempty"`

	// run is the name of a SequenceRun of this namespace, in place of release and step.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Run string `json:"run,omitempty"`

	// task of the run; approval#2 is the second approval. Absent: the one that waits; stamped. Of a release: Before approves that the wave
	// begins, as its beforeTasks ask, and nothing else; absent approves the step, and not the beginning of its wave.
	// +optional
	// +kubebuilder:validation:MaxLength=70
	Task string `json:"task,omitempty"`

	// decision is Approve or Reject. One rejection keeps the step from being achieved, and the wave from being done, until it is deleted or
	// the Release is moved; a task fails by it.
	// +optional
	// +kubebuilder:default=Approve
	Decision ApprovalDecision `json:"decision,omitempty"`

	// reason is for others to read.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`

	// by is who created the Approval. Written by Shipper: leave it out.
	// +optional
	By ApprovalUser `json:"by,omitzero"`

	// move is how often the Release had been moved by then. Written by Shipper: leave it out.
	// +optional
	Move int64 `json:"move,omitempty"`

	// eventID is refused in new Approvals: status has it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	EventID string `json:"eventID,omitempty"`

	// subject is refused in new Approvals: status has it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Subject string `json:"subject,omitempty"`

	// time is refused in new Approvals: metadata.creationTimestamp has it.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	// wave is the index, from 0, of the wave of the step: the one in targetWave. Default: the wave that the Release is in; written by Shipper
	// then. A file that is to approve one wave alone names it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Wave *int32 `json:"wave,omitempty"`
}

// ApprovalStatus is what an Approval of a run has come to.
type ApprovalStatus struct {
	// eventID is the attempt at the task that it approves or rejects.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	EventID string `json:"eventID,omitempty"`

	// subject is a digest of the version and the values that it approves, a sha256 in hexadecimal: subject of the task.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Subject string `json:"subject,omitempty"`

	// conditions: Counted.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
}

// ApprovalBefore is the task of an Approval of beforeTasks.
const ApprovalBefore = "Before"

// ApprovalUser is a user as the API server knows them.
type ApprovalUser struct {
	// username is unique among all users.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Username string `json:"username,omitempty"`
	// uid may be empty.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	UID string `json:"uid,omitempty"`
}

// ApprovalDecision is what an Approval says.
// +kubebuilder:validation:Enum=Approve;Reject
type ApprovalDecision string

// The values of ApprovalDecision.
const (
	DecisionApprove ApprovalDecision = "Approve"
	DecisionReject  ApprovalDecision = "Reject"
)

// RepeatedBy is a retry that has used the approvals of the run that it repeats.
type RepeatedBy struct {
	// name of the retry.
	Name string `json:"name"`
	// uid of the retry.
	UID string `json:"uid"`
}

// ApprovalList is a list of Approvals.
//
// +kubebuilder:object:root=true
type ApprovalList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Approval `json:"items"`
}
