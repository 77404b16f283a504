// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ResourceOverride patches or deletes objects of Applications in some clusters. A Release copies the ResourceOverrides that bear on it when
// Shipper creates it, so an edit takes effect with the next Release. In the global namespace it bears on the Applications of all
// namespaces. The original Shipper had none.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=resourceoverrides,shortName=rso,categories={shipper}
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Mandatory",type=boolean,JSONPath=`.spec.mandatory`
// +kubebuilder:printcolumn:name="Requested By",type=string,priority=1,JSONPath=`.metadata.annotations.shipper\.booking\.com/override\.requested-by`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceOverride struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which objects differ, in which clusters, and how.
	Spec ResourceOverrideSpec `json:"spec"`
}

// ResourceOverrideSpec says which objects differ, in which clusters, and how.
// +kubebuilder:validation:XValidation:rule="!(has(self.applicationNames) && has(self.applications))",message="give applicationNames or applications, not both",fieldPath=".applications",reason=FieldValueForbidden
type ResourceOverrideSpec struct {
	// applicationNames are the names of the Applications, at most 100. Default: all that applications selects.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	ApplicationNames []string `json:"applicationNames,omitempty"`

	// applications selects Applications by their labels. Default: all Applications of the namespace; of all namespaces if the
	// ResourceOverride is in the global namespace.
	// +optional
	Applications *metav1.LabelSelector `json:"applications,omitempty"`

	// resources select the objects that rules change, 1 to 50. An object that any entry selects is changed.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	Resources []OverriddenResource `json:"resources"`

	// rules say how the objects differ, 1 to 50; their number times that of resources is 500 at most. All rules that match a cluster are
	// carried out in their order.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	Rules []OverrideRule `json:"rules"`

	// priority orders the ResourceOverrides of a namespace: the one with the higher priority is applied later, and wins. Those with the
	// same priority are applied in the order of their names. From -1000 to 1000. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority,omitempty"`

	// mandatory applies the ResourceOverride after those of the Application's namespace, so that none of them changes its result, and to
	// rollbacks, too. Only in the global namespace. Default: false, it is applied before them.
	// +optional
	Mandatory bool `json:"mandatory,omitempty"`
}

// OverriddenResource selects objects of one kind: the one called name, those with the labels, or, without both, all. Objects outside the
// Application's namespace are selected only by a ResourceOverride in the global namespace. Helm hooks are selected as other objects are.
// +kubebuilder:validation:XValidation:rule="!(has(self.name) && has(self.labelSelector))",message="give a name or a labelSelector, not both",fieldPath=".labelSelector",reason=FieldValueForbidden
type OverriddenResource struct {
	// group of the kind, in any version. Default: the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// kind of the objects, such as Deployment.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// name of the object as the chart renders it, or as it is selected for placement. ${release.name} stands for the name of the Release.
	// Default: labelSelector selects.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// labelSelector selects by the labels that the object has before any override. Default: all objects of the kind.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// OverrideRule changes the objects in the clusters that it matches, by a patch or by deletion.
// +kubebuilder:validation:XValidation:rule="has(self.patch) != (has(self.delete) && self.delete)",message="give a patch or delete: true, exactly one of the two",fieldPath=".patch",reason=FieldValueInvalid
type OverrideRule struct {
	// clusterTerms say which clusters; one of them has to match, at most 10. Default: all clusters.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	ClusterTerms []OverrideClusterTerm `json:"clusterTerms,omitempty"`

	// patch is a JSON patch (RFC 6902), 1 to 100 operations. It must not change apiVersion, kind, status, or metadata other than labels and
	// annotations. Values may contain ${cluster.name}, ${cluster.region}, ${cluster.labels['KEY']}, ${cluster.properties['NAME']} and
	// ${release.name}; $${ stands for ${.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Patch []PatchOperation `json:"patch,omitempty"`

	// delete leaves the objects out of the clusters: Shipper does not create them there, and removes those that it has created. Later rules
	// do not bring them back. Default: false.
	// +optional
	Delete bool `json:"delete,omitempty"`
}

// OverrideClusterTerm describes clusters by name and by labels. Both have to match, if both are there.
type OverrideClusterTerm struct {
	// names are the names of the clusters, at most 100. Default: any name.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Names []string `json:"names,omitempty"`

	// labelSelector selects by the labels of Cluster objects, and by shipper.booking.com/region, shipper.booking.com/cluster and
	// capability.shipper.booking.com/CAPABILITY. Default: any labels.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// ReleaseOverride is the copy of a ResourceOverride that a Release keeps.
type ReleaseOverride struct {
	// name of the ResourceOverride, as namespace/name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Name string `json:"name"`

	// global is true for a ResourceOverride in the global namespace, which may change objects of other namespaces and without one.
	// Default: false.
	// +optional
	Global bool `json:"global,omitempty"`

	// resources are those of the ResourceOverride.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	Resources []OverriddenResource `json:"resources"`

	// rules are those of the ResourceOverride.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	Rules []OverrideRule `json:"rules"`

	// mandatory is true for a ResourceOverride that was mandatory when it was copied. A rollback does not restore it: the new Release has
	// those that are mandatory then. Default: false.
	// +optional
	Mandatory bool `json:"mandatory,omitempty"`

	// requestedBy is the user who last wrote the ResourceOverride before it was copied. Shipper does not count this user's approval of the
	// Release. Default: unknown.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	RequestedBy string `json:"requestedBy,omitempty"`

	// earlierWriters are the other users who have written the ResourceOverride since it was created, at most 20: rules of theirs may still be
	// in it. Shipper does not count their approvals of the Release, either. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=1024
	EarlierWriters []string `json:"earlierWriters,omitempty"`
}

// ResourceOverrideList is a list of ResourceOverrides.
//
// +kubebuilder:object:root=true
type ResourceOverrideList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceOverride `json:"items"`
}

// OverrideFailed means that an override of the Release cannot be applied in a cluster, where nothing of the Release is written then.
const OverrideFailed = "OverrideFailed"
