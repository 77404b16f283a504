// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "encoding/json"

// ValuesFor are values for the clusters of one region, or for one cluster. They are merged as Helm merges values files: maps
// key by key; any other value replaces the old one; null removes a key, even one with a default in the chart.
type ValuesFor struct {
	// name of the region or of the cluster, as in Cluster objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// values are merged over the more general ones. Absent means none.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Values *ChartValues `json:"values,omitempty"`

	// patch is a JSON patch (RFC 6902) of the merged values, for changes that merging cannot express, such as one item of a list.
	// Patches are applied last, a region's before a cluster's. They do not see the chart's own defaults. Absent means none.
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

// MarshalJSON writes the operation as a plain map. Schema generators treat a type with this method as free-form.
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
