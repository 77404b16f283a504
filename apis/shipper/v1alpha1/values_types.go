// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "encoding/json"

// ValuesFor are values for the clusters of one region, or for one cluster. Maps are merged into what they are for, key by
// key; whatever else there is takes its place, and null takes a key away, also one that the chart has by default. That is how
// Helm reads one values file after another.
type ValuesFor struct {
	// name of the region or of the cluster, as in Cluster objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// values are merged over those that apply more widely. Absent means that there are none.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Values *ChartValues `json:"values,omitempty"`

	// patch is a JSON patch (RFC 6902) of the merged values, for what merging cannot say: one item of a list. It is applied
	// last, a region's before a cluster's. It does not see the chart's own defaults. Absent means none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Patch []PatchOperation `json:"patch,omitempty"`
}

// PatchOperation is one operation of a JSON patch: op (add, remove, replace, move, copy or test), path, and from or value.
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:object:generate=false
type PatchOperation map[string]any

// MarshalJSON writes the operation as the map it is. That it is there tells who generates schemas that this is free-form.
func (in PatchOperation) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]any(in)) }

// DeepCopyInto copies the operation, its value included, into out.
func (in PatchOperation) DeepCopyInto(out *PatchOperation) {
	var copied ChartValues
	ChartValues(in).DeepCopyInto(&copied)
	*out = PatchOperation(copied)
}

// DeepCopy returns a copy that shares nothing with in; nil stays nil.
func (in PatchOperation) DeepCopy() PatchOperation {
	var out PatchOperation
	in.DeepCopyInto(&out)
	return out
}
