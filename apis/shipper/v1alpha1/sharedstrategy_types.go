// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Strategy is a rollout strategy that Applications share: they name it in strategy.from. An Application takes it when its template is
// edited, and a Release keeps what it took, so an edit of a Strategy changes no rollout by itself. Applications of all namespaces may name
// those of the global namespace. The original Shipper had none.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=strategies,shortName=strat,categories={shipper}
// +kubebuilder:printcolumn:name="Steps",type=string,JSONPath=`.spec.steps[*].name`
// +kubebuilder:printcolumn:name="Waves",type=string,JSONPath=`.spec.waves[*].name`
// +kubebuilder:printcolumn:name="Advance",type=string,JSONPath=`.spec.advance`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Strategy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what an Application has in strategy otherwise, at most 64 KiB. With steps it is for charts, without for resources. Its checks
	// are looked up in the namespace of the Application.
	// +kubebuilder:validation:XValidation:rule="!has(self.from)",message="a Strategy takes nothing from another one",fieldPath=".from",reason=FieldValueForbidden
	Spec RolloutStrategy `json:"spec"`
}

// StrategyReference names a Strategy.
type StrategyReference struct {
	// name of the Strategy.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// namespace of the Strategy: the Application's own, or the global namespace, rollout-blocks-global. Default: the Application's own.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// digest is the sha256 (hex) of the spec of the Strategy that was taken. Written by Shipper: leave it out.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`
}

// StrategyList is a list of Strategies.
//
// +kubebuilder:object:root=true
type StrategyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Strategy `json:"items"`
}
