// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ReleaseEnvironment is everything needed to run one version of an application. The order of its fields must not change: the
// hash in a Release's name is computed from this JSON.
// +kubebuilder:validation:XValidation:rule="has(self.chart) || has(self.resources)",message="name a chart or resources: exactly one of the two",fieldPath=".chart",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.chart) || !has(self.resources)",message="name a chart or resources: exactly one of the two",fieldPath=".resources",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.chart) || has(self.resources) || has(self.strategy.steps) || has(self.strategy.from)",message="a chart needs steps",fieldPath=".strategy.steps",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.resources) || has(self.chart) || !has(self.strategy.steps)",message="resources have no capacity and traffic to step through: rolling says how many clusters change at the same time",fieldPath=".strategy.steps",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.resources) || has(self.chart) || !has(self.strategy.waves) || self.strategy.waves.all(w, !has(w.beforeTasks))",message="beforeTasks are not for resources: use afterTasks of the wave before",fieldPath=".strategy.waves",reason=FieldValueForbidden
type ReleaseEnvironment struct {
	// chart is the Helm chart to install. Required without resources.
	// +optional
	// +kubebuilder:validation:XValidation:rule="(has(self.repoUrl) && self.repoUrl != '') != has(self.archive)",message="name either the repository, by repoUrl, or the archive itself"
	Chart Chart `json:"chart,omitzero"`

	// values for the chart, as in a values.yaml. Absent means the chart's own defaults.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Values *ChartValues `json:"values"`

	// clusterRequirements select the clusters.
	ClusterRequirements ClusterRequirements `json:"clusterRequirements"`

	// strategy is the list of steps by which this Release replaces its predecessor.
	// +required
	Strategy *RolloutStrategy `json:"strategy,omitempty"`

	// valuesPerRegion are merged over values in the clusters of a region. Absent means that all regions have the same.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	ValuesPerRegion []ValuesFor `json:"valuesPerRegion,omitempty"`

	// valuesPerCluster are merged over values and those of the region in one cluster. Absent means that all clusters of a
	// region have the same.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1000
	ValuesPerCluster []ValuesFor `json:"valuesPerCluster,omitempty"`

	// valuesFrom are ConfigMaps and Secrets with more values. Later ones override earlier ones; values, valuesPerRegion and
	// valuesPerCluster override all of them. Shipper reads them when the template is written and keeps a copy for the Release. It
	// reads them again only when the template changes, or when the Application's annotation shipper.booking.com/app.values.refresh
	// gets another value. Absent means none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	ValuesFrom []ValuesSource `json:"valuesFrom,omitempty"`

	// valuesDigests has, by source (Kind/name/key), a digest of the content of each of valuesFrom, or "absent". Written by Shipper:
	// leave it out.
	// +optional
	// +kubebuilder:validation:MaxProperties=10
	ValuesDigests map[string]string `json:"valuesDigests,omitempty"`

	// resources are objects of the management cluster to place, instead of a chart. Absent means that chart is installed. The original had
	// no such field.
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	// apply says how resources are written in clusters. Absent means by server-side apply. The original had no such field.
	// +optional
	Apply *Apply `json:"apply,omitempty"`

	// resourcesDigest is the sha256 (hex) of the content of resources. Releases have it, and Applications do not: Shipper writes it when it
	// creates the Release. The original had no such field.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	ResourcesDigest string `json:"resourcesDigest,omitempty"`
}

// ClusterRequirements select clusters.
// +kubebuilder:validation:XValidation:rule="has(self.regions) || has(self.placement)",message="name at least one region to run in, or give a placement",fieldPath=".regions",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.regions) || !has(self.placement)",message="give regions or a placement, not both",fieldPath=".placement",reason=FieldValueForbidden
type ClusterRequirements struct {
	// regions to run in. Required without placement.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Regions []RegionRequirement `json:"regions,omitempty"`

	// capabilities every chosen cluster must offer. Absent means none.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	Capabilities []string `json:"capabilities,omitempty"`

	// placement is a policy that chooses clusters, instead of regions. Absent means that regions do. The original had no such field.
	// +optional
	Placement *Placement `json:"placement,omitempty"`
}

// RegionRequirement is a region and the number of clusters to choose in it.
type RegionRequirement struct {
	// name of the region, as in Cluster objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// replicas is the number of clusters to choose in this region (not Pods). Absent means 1; 0 means none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Replicas *int32 `json:"replicas,omitempty"`
}
