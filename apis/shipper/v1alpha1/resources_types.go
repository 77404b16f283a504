// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Resources are objects of the management cluster that are placed on clusters, instead of a chart.
type Resources struct {
	// select says which objects. An object that any selector selects is placed.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Select []ResourceSelector `json:"select"`

	// follow says when the content of the objects is taken. Always: whenever it changes, each time as a new Release. OnRefresh: when
	// template is edited, or the Application's annotation shipper.booking.com/app.resources.refresh gets another value. Absent means
	// Always.
	// +optional
	Follow ResourcesFollow `json:"follow,omitempty"`

	// removal says what is removed from a cluster that is no longer chosen, of objects that are no longer selected, and of a deleted
	// Application. WhenEmpty: all, but Namespaces and CustomResourceDefinitions only when nothing of others is in them. All:
	// everything. None: nothing. Absent means WhenEmpty.
	// +optional
	Removal ResourcesRemoval `json:"removal,omitempty"`

	// ready says when objects of a kind are ready that kstatus knows nothing of. Absent means that kstatus judges all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Ready []ReadyRule `json:"ready,omitempty"`
}

// ResourceSelector selects objects of one kind: the one called name, those with the labels, or, without both, all. All Namespaces, and all
// Secrets of a namespace, are selected only by labelSelector: {}.
// +kubebuilder:validation:XValidation:rule="!(has(self.name) && has(self.labelSelector))",message="give a name or a labelSelector, not both",fieldPath=".labelSelector",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="has(self.name) || has(self.labelSelector) || has(self.group) && size(self.group) > 0 || !(self.kind in ['Namespace', 'Secret'])",message="name one, or write labelSelector: {} for all: Namespaces and Secrets are not selected by their kind alone",fieldPath=".labelSelector",reason=FieldValueRequired
type ResourceSelector struct {
	// group of the kind; empty for the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// version in which the objects are read. Absent means the one that the API server prefers.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version,omitempty"`

	// kind of the objects, such as ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// namespace of the objects. Absent means that of the Application; kinds without a namespace have none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name of the object. Absent means that labelSelector selects.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != ''",message="leave an empty name out: labelSelector: {} selects all objects of the kind"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// labelSelector selects by labels; {} selects all objects of the kind. Required for Namespaces and Secrets without a name.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// content says whether what is in a Namespace is placed with it. All: everything that may be placed. None: the Namespace alone.
	// Absent means All. For Namespaces only.
	// +optional
	Content NamespaceContent `json:"content,omitempty"`
}

// ResourcesFollow says when the content of objects is taken.
// +kubebuilder:validation:Enum=Always;OnRefresh
type ResourcesFollow string

// The values of ResourcesFollow.
const (
	FollowAlways    ResourcesFollow = "Always"
	FollowOnRefresh ResourcesFollow = "OnRefresh"
)

// ResourcesRemoval says what is removed.
// +kubebuilder:validation:Enum=WhenEmpty;All;None
type ResourcesRemoval string

// The values of ResourcesRemoval.
const (
	RemovalWhenEmpty ResourcesRemoval = "WhenEmpty"
	RemovalAll       ResourcesRemoval = "All"
	RemovalNone      ResourcesRemoval = "None"
)

// NamespaceContent says whether what is in a Namespace is placed with it.
// +kubebuilder:validation:Enum=All;None
type NamespaceContent string

// The values of NamespaceContent.
const (
	ContentAll  NamespaceContent = "All"
	ContentNone NamespaceContent = "None"
)

// ReadyRule says when objects of a kind are ready.
type ReadyRule struct {
	// group of the kind; empty for the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// kind of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// expression is CEL over object, with the result true or false: object.status.phase == "Bound". An error means not ready.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Expression string `json:"expression"`
}

// Apply says how objects are written in clusters.
type Apply struct {
	// type is ServerSide, by server-side apply; ClientSide, by a three-way merge with what was applied last; or ReportDiff, which writes
	// nothing and reports how the cluster differs. Absent means ServerSide.
	// +optional
	Type ApplyType `json:"type,omitempty"`

	// forceConflicts says whether fields that other field managers own are taken over. Absent means true. With ServerSide only.
	// +optional
	ForceConflicts *bool `json:"forceConflicts,omitempty"`

	// comparison says what counts as a difference. Managed: fields of the manifest that have another value. Full: also fields that the
	// manifest lacks. Absent means Managed.
	// +optional
	Comparison ApplyComparison `json:"comparison,omitempty"`

	// takeOver says what becomes of an object that is in a cluster already and is not the Application's. Never: it is left alone, which
	// is reported. IfNoDiff: it is taken over when it does not differ. Always: it is taken over. Absent means Never. A Namespace or
	// CustomResourceDefinition that is there is used as it is with Never. What another object owns, or a controller made for it, is
	// never taken over.
	// +optional
	TakeOver TakeOverPolicy `json:"takeOver,omitempty"`
}

// ApplyType says how objects are written.
// +kubebuilder:validation:Enum=ServerSide;ClientSide;ReportDiff
type ApplyType string

// The values of ApplyType.
const (
	ApplyServerSide ApplyType = "ServerSide"
	ApplyClientSide ApplyType = "ClientSide"
	ApplyReportDiff ApplyType = "ReportDiff"
)

// ApplyComparison says what counts as a difference.
// +kubebuilder:validation:Enum=Managed;Full
type ApplyComparison string

// The values of ApplyComparison.
const (
	ComparisonManaged ApplyComparison = "Managed"
	ComparisonFull    ApplyComparison = "Full"
)

// TakeOverPolicy says what becomes of objects that are there already.
// +kubebuilder:validation:Enum=Never;IfNoDiff;Always
type TakeOverPolicy string

// The values of TakeOverPolicy.
const (
	TakeOverNever    TakeOverPolicy = "Never"
	TakeOverIfNoDiff TakeOverPolicy = "IfNoDiff"
	TakeOverAlways   TakeOverPolicy = "Always"
)

// RollingClusters bounds how many clusters are changed at the same time. Percentages are of the chosen clusters, rounded up.
type RollingClusters struct {
	// maxUnavailable is how many clusters may be without a ready version at the same time, as a number or a percentage; at least 1, for
	// objects are changed in place. Clusters that have no version yet, and those that Shipper cannot reach, do not count. Absent means 25%.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxSurge is how many more clusters than chosen may have the Application while some leave, as a number or a percentage. 0
	// means 1, for a replacement is placed before a cluster is emptied. Absent means 25%.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
}

// Selector is the user whose rights the content of resources is taken with, as the annotation
// shipper.booking.com/app.selected-by has it.
// +kubebuilder:object:generate=false
type Selector struct {
	Username string   `json:"username"`
	UID      string   `json:"uid,omitempty"`
	Groups   []string `json:"groups,omitempty"`
}

// TakenResources is the content of template.resources that was taken last.
type TakenResources struct {
	// digest is the sha256 (hex) of the content. After a rollback or an abort the newest Release has another one.
	Digest string `json:"digest"`
	// objects is the number of objects in the content.
	// +optional
	Objects int32 `json:"objects,omitempty"`
	// takenAt is when the content was taken.
	TakenAt metav1.Time `json:"takenAt"`
	// refresh is the value of the annotation shipper.booking.com/app.resources.refresh at that time.
	// +optional
	Refresh string `json:"refresh,omitempty"`
	// selectedBy is the name of the user with whose rights the content was taken.
	// +optional
	SelectedBy string `json:"selectedBy,omitempty"`
}

// ResourceSnapshot keeps the content of Releases with resources, named by its digest, in parts. Those of a namespace and digest are
// owned by the Releases that have the digest, are immutable, and go with the last of them. Secrets are apart, in a Secret of type
// shipper.booking.com/resources. Only the reconciler writes them. The original Shipper had none.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=resourcesnapshots,shortName=rsn,categories={shipper}
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.spec.objects`
// +kubebuilder:printcolumn:name="Bytes",type=integer,JSONPath=`.spec.bytes`
// +kubebuilder:printcolumn:name="Part",type=integer,JSONPath=`.spec.part`
// +kubebuilder:printcolumn:name="Parts",type=integer,JSONPath=`.spec.parts`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the content, or a part of it.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="immutable: keep it, it may be the only copy of a Release's content"
	Spec ResourceSnapshotSpec `json:"spec"`
}

// ResourceSnapshotSpec is the content of a Release with resources, or a part of it.
type ResourceSnapshotSpec struct {
	// digest is the sha256 (hex) of the whole content.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	Digest string `json:"digest"`
	// objects is the number of objects in the whole content, 2,000 at most.
	// +kubebuilder:validation:Minimum=0
	Objects int32 `json:"objects"`
	// bytes is the size of the whole content, 8 MiB at most.
	// +kubebuilder:validation:Minimum=0
	Bytes int64 `json:"bytes"`
	// parts is the number of ResourceSnapshots with the content, Secrets not counted.
	// +kubebuilder:validation:Minimum=1
	Parts int32 `json:"parts"`
	// part is the number of this one, from 1 on.
	// +kubebuilder:validation:Minimum=1
	Part int32 `json:"part"`
	// secrets is the number of Secrets with content, beside the parts. Absent means none.
	// +optional
	Secrets int32 `json:"secrets,omitempty"`
	// data is a sequence of objects, each as one line of JSON. An object that is larger than a part continues in the next one.
	// +optional
	// +kubebuilder:validation:MaxLength=1048576
	Data string `json:"data,omitempty"`
}

// ResourceSnapshotList is a list of ResourceSnapshots.
//
// +kubebuilder:object:root=true
type ResourceSnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceSnapshot `json:"items"`
}

// ResourceSnapshotName is the name of a part of the content with a digest; parts count from 1. The Secret with the Secrets of a part has
// the same name.
func ResourceSnapshotName(digest string, part int32) string {
	return ChartSnapshotPartName(digest, part)
}

// ResourcesSecretType is the type of the Secrets that keep the Secrets of a ResourceSnapshot. They are immutable.
const ResourcesSecretType = "shipper.booking.com/resources"

// Envelope holds manifests that are placed on clusters and have no effect on the management cluster. An Application selects it by kind
// and name; its content is placed, and not the Envelope. The original Shipper had none.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=envelopes,shortName=envl,categories={shipper}
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Envelope struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the content.
	Spec EnvelopeSpec `json:"spec"`
}

// EnvelopeSpec is the content of an Envelope.
type EnvelopeSpec struct {
	// manifests are objects, each with apiVersion, kind and metadata.name, 900 KiB together. One of a kind with namespaces that names
	// none gets that of the Envelope.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=200
	Manifests []Manifest `json:"manifests"`
}

// Manifest is an object of any kind.
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:object:generate=false
type Manifest map[string]any

// MarshalJSON writes the manifest as a plain map. Schema generators treat a type with this method as free-form.
func (in Manifest) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]any(in)) }

// DeepCopyInto copies the manifest, nested maps and lists included, into out.
func (in Manifest) DeepCopyInto(out *Manifest) {
	var copied ChartValues
	ChartValues(in).DeepCopyInto(&copied)
	*out = Manifest(copied)
}

// DeepCopy returns a copy that shares nothing with in; nil stays nil.
func (in Manifest) DeepCopy() Manifest {
	return Manifest(ChartValues(in).DeepCopy())
}

// EnvelopeList is a list of Envelopes.
//
// +kubebuilder:object:root=true
type EnvelopeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Envelope `json:"items"`
}
