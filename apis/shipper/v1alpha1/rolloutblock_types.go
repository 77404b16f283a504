// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RolloutBlock stops rollouts while it exists: in its own namespace, or in every namespace when it is in the global one
// (rollout-blocks-global by default).
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=rolloutblocks,shortName=rb,categories={all,shipper}
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.spec.message`
// +kubebuilder:printcolumn:name="Author Type",type=string,priority=1,JSONPath=`.spec.author.type`
// +kubebuilder:printcolumn:name="Author Name",type=string,priority=1,JSONPath=`.spec.author.name`
// +kubebuilder:printcolumn:name="Overriding Applications",type=string,priority=1,JSONPath=`.status.overrides.application`
// +kubebuilder:printcolumn:name="Overriding Releases",type=string,priority=1,JSONPath=`.status.overrides.release`
type RolloutBlock struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is why rollouts are blocked, and by whom.
	Spec RolloutBlockSpec `json:"spec"`

	// status is who overrides the block. Written by the reconciler.
	// +optional
	Status RolloutBlockStatus `json:"status,omitempty"`
}

// RolloutBlockSpec is why rollouts are blocked, and by whom.
type RolloutBlockSpec struct {
	// message tells the users who are refused why.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`

	// author is who put the block in place. Absent: stamped from the request when it is created.
	// +optional
	Author RolloutBlockAuthor `json:"author"`
}

// RolloutBlockAuthor is who put a block in place.
type RolloutBlockAuthor struct {
	// type of the author, for example user or serviceaccount.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Type string `json:"type"`

	// name of the author.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Name string `json:"name"`
}

// RolloutBlockStatus is who overrides a block.
type RolloutBlockStatus struct {
	// observedGeneration is the metadata.generation this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// overrides lists the living objects that override this block.
	// +optional
	Overrides RolloutBlockOverrides `json:"overrides"`
}

// RolloutBlockOverrides lists objects as `namespace/name`, sorted, comma-separated.
type RolloutBlockOverrides struct {
	// release lists the Releases that override the block.
	// +optional
	Release string `json:"release"`

	// application lists the Applications that override the block.
	// +optional
	Application string `json:"application"`
}

// RolloutBlockList is a list of RolloutBlocks.
//
// +kubebuilder:object:root=true
type RolloutBlockList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RolloutBlock `json:"items"`
}
