// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxChartPartBytes is the size of an archive's part in one ChartSnapshot. In base64 it fits into one object.
const MaxChartPartBytes = 768 << 10

// ChartSnapshot keeps the chart's archive that Releases are rendered from, named by its digest. For each namespace and digest,
// one ChartSnapshot describes the archive; the Releases rendered from it own it. It owns one ChartSnapshot for each part of the
// archive, with the bytes. ChartSnapshots are immutable and are deleted with their last Release. Only the reconciler writes
// them. The original Shipper had none.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=chartsnapshots,shortName=chs,categories={shipper}
// +kubebuilder:printcolumn:name="Chart",type=string,JSONPath=`.spec.chart.name`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.chart.version`
// +kubebuilder:printcolumn:name="Bytes",type=integer,JSONPath=`.spec.bytes`
// +kubebuilder:printcolumn:name="Part",type=integer,JSONPath=`.spec.part`
// +kubebuilder:printcolumn:name="Parts",type=integer,JSONPath=`.spec.parts`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ChartSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the archive, or a part of it.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a snapshot is immutable: delete it, and the reconciler creates it again"
	Spec ChartSnapshotSpec `json:"spec"`
}

// ChartSnapshotSpec is the archive of a chart, or a part of it.
type ChartSnapshotSpec struct {
	// chart is the name, version and repository that the archive was fetched by.
	Chart Chart `json:"chart"`
	// digest is the sha256 (hex) of the whole archive.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	Digest string `json:"digest"`
	// bytes is the size of the whole archive.
	// +kubebuilder:validation:Minimum=1
	Bytes int64 `json:"bytes"`
	// parts is the number of objects with the archive's bytes: 768 KiB in each but the last.
	// +kubebuilder:validation:Minimum=1
	Parts int32 `json:"parts"`
	// part is the number of the part in data, from 1 on. 0: this object describes the archive and has no data.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Part int32 `json:"part,omitempty"`
	// data is the part's bytes.
	// +optional
	// +kubebuilder:validation:MaxLength=1048576
	Data []byte `json:"data,omitempty"`
}

// ChartSnapshotList is a list of ChartSnapshots.
//
// +kubebuilder:object:root=true
type ChartSnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ChartSnapshot `json:"items"`
}
