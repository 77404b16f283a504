// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Approval is one user's consent to a step of a Release whose gate asks for approvals, or the refusal of it. It counts until the Release is
// moved or it is deleted. Shipper writes who gave it, and when; nothing of it can be changed.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=approvals,shortName=appr,categories={shipper}
// +kubebuilder:printcolumn:name="Release",type=string,JSONPath=`.spec.release`
// +kubebuilder:printcolumn:name="Step",type=integer,JSONPath=`.spec.step`
// +kubebuilder:printcolumn:name="Decision",type=string,JSONPath=`.spec.decision`
// +kubebuilder:printcolumn:name="By",type=string,JSONPath=`.spec.by.username`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Approval struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is approved or refused.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an Approval cannot be changed: delete it, and create another"
	Spec ApprovalSpec `json:"spec"`
}

// ApprovalSpec names the step that a user approves or refuses.
//
// +kubebuilder:validation:XValidation:rule="has(self.release) && has(self.step)",message="set release and step"
type ApprovalSpec struct {
	// release is the name of a Release of this namespace.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Release string `json:"release,omitempty"`

	// step is the index, from 0, of the step: the one in targetStep.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Step *int32 `json:"step,omitempty"`

	// decision is Approve or Reject. One rejection keeps the step from being achieved until it is deleted or the Release is moved.
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

	// time of the creation. Written by Shipper: leave it out.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	// move is how often the Release had been moved by then. Written by Shipper: leave it out.
	// +optional
	Move int64 `json:"move,omitempty"`
}

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

// ApprovalList is a list of Approvals.
//
// +kubebuilder:object:root=true
type ApprovalList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Approval `json:"items"`
}
