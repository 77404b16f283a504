// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxChartPartBytes is how much of an archive is in one ChartSnapshot: in base64, less than an object may have.
const MaxChartPartBytes = 768 << 10

// ChartSnapshot keeps what Releases are rendered from: the archive of a chart, by its digest. There is one per namespace and
// digest, which says what the archive is and belongs to the Releases made of it, and one for each part of the archive,
// which has the bytes and belongs to the first. Nothing in it ever changes, and it goes with the last Release that it belongs
// to. It is written by the reconciler only. The original Shipper had none.
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
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a snapshot never changes: delete it, and the reconciler makes it anew"
	Spec ChartSnapshotSpec `json:"spec"`
}

// ChartSnapshotSpec is the archive of a chart, or a part of it.
type ChartSnapshotSpec struct {
	// chart is what the archive was fetched as.
	Chart Chart `json:"chart"`
	// digest is the sha256 (hex) of the whole archive.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	Digest string `json:"digest"`
	// bytes is the size of the whole archive.
	// +kubebuilder:validation:Minimum=1
	Bytes int64 `json:"bytes"`
	// parts is how many objects the archive's bytes are in, of 768 KiB each but for the last.
	// +kubebuilder:validation:Minimum=1
	Parts int32 `json:"parts"`
	// part is the number of the part that data is, from 1 on. 0: this object says what the archive is, and has no data.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Part int32 `json:"part,omitempty"`
	// data is the part.
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
