// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "encoding/json"

// ReleaseEnvironment is all that is needed to run one version of an application. The order of its fields is part of the
// wire: the hash in a Release's name is taken over this JSON.
type ReleaseEnvironment struct {
	// chart is the Helm chart to install.
	// +kubebuilder:validation:XValidation:rule="(has(self.repoUrl) && self.repoUrl != '') != has(self.archive)",message="name either the repository, by repoUrl, or the archive itself"
	Chart Chart `json:"chart"`

	// values are given to the chart as a values.yaml would be. Absent means the chart's own defaults.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Values *ChartValues `json:"values"`

	// clusterRequirements say which clusters may run this.
	ClusterRequirements ClusterRequirements `json:"clusterRequirements"`

	// strategy is the list of steps by which this takes over from its predecessor.
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

	// valuesFrom are ConfigMaps and Secrets that hold more values. They are merged one over the other, in their order, and values and
	// what differs from place to place over them. What they hold is taken when the template is written, and kept for its Release:
	// later changes of theirs do nothing before the template is written otherwise, or the annotation
	// shipper.booking.com/app.values.refresh of the Application gets another value. Absent means none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	ValuesFrom []ValuesSource `json:"valuesFrom,omitempty"`

	// valuesDigests has, by source (Kind/name/key), a digest of what each of valuesFrom held, or "absent". Written by Shipper: leave it out.
	// +optional
	// +kubebuilder:validation:MaxProperties=10
	ValuesDigests map[string]string `json:"valuesDigests,omitempty"`
}

// Chart names a version of a Helm chart in a repository, or is one itself.
type Chart struct {
	// name of the chart in the repository's index or, in an Application, that of its archive when it is left out.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// version is an exact version or, in an Application, a SemVer constraint that is resolved in place when the object is
	// admitted; the constraint is kept in the annotation shipper.booking.com/app.chart.version.raw.
	// Empty or absent means the newest stable version or, with an archive, the version that it has.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Version string `json:"version"`

	// repoUrl is the http or https URL of the repository, the folder that holds index.yaml, or an OCI registry as oci://host/path,
	// where path/name is the chart and its tags are the versions. Required without an archive.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	RepoURL string `json:"repoUrl"`

	// archive is the chart itself, in place of a repository: what `helm package` makes, in base64, of at most 512 KiB before
	// that. It is opened when an Application with it is admitted. InstallationTargets and ChartSnapshots leave it to their Release.
	// +optional
	// +kubebuilder:validation:MaxLength=699052
	Archive string `json:"archive,omitempty"`

	// credentials open the repository. Who names them has to be allowed to get their Secret; so has Shipper, by a RoleBinding of
	// the namespace to the ClusterRole shipper-namespace-reader. Absent means that anybody may read the repository, or that its URL says how.
	// +optional
	Credentials ChartCredentials `json:"credentials,omitzero"`

	// verify demands that the chart is signed: nothing is installed of an archive before a Helm provenance file (.prov) was found
	// that one of these keys signed. Absent means that nobody asks who made it. The original had no such field.
	// +optional
	Verify ChartVerification `json:"verify,omitzero"`

	// provenance is the .prov file of archive, as text. Where there is a repository it is beside the archive there.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Provenance string `json:"provenance,omitempty"`
}

// ChartVerification says whose signature a chart must have.
type ChartVerification struct {
	// secretName is the name of a Secret in the namespace of the Application, whose key pubring.gpg has the public keys, as
	// `gpg --export` writes them, with or without --armor. Who names it has to be allowed to get it; so has Shipper, by a RoleBinding
	// of the namespace to the ClusterRole shipper-namespace-reader.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// signer is the fingerprint of the one key that must have signed, or whose subkey must have: 40 or 64 of the characters 0-9 and A-F,
	// as `gpg --list-keys` has them. Absent means that any key of the Secret will do.
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9A-F]{40}|[0-9A-F]{64})$`
	Signer string `json:"signer,omitempty"`
}

// ChartCredentials say where the credentials for a repository are.
type ChartCredentials struct {
	// secretName is the name of a Secret in the namespace of the Application. Its label shipper.booking.com/repository-credentials is
	// "true", and its annotation shipper.booking.com/repository-url is a URL that repoUrl is at or below. Only there its keys username and
	// password, or token, are sent, and its tls.crt and tls.key shown; ca.crt has authorities that vouch for that server.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`
}

// ChartValues are free-form Helm values.
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:object:generate=false
type ChartValues map[string]any

// DeepCopyInto copies the values, nested maps and lists included, into out.
func (in ChartValues) DeepCopyInto(out *ChartValues) {
	if in == nil {
		*out = nil
		return
	}
	copied := make(ChartValues, len(in))
	for k, v := range in {
		copied[k] = copyValue(v)
	}
	*out = copied
}

// DeepCopy returns a copy that shares nothing with in; nil stays nil.
func (in ChartValues) DeepCopy() ChartValues {
	var out ChartValues
	in.DeepCopyInto(&out)
	return out
}

// copyValue copies what JSON can hold. Scalars are values already.
func copyValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = copyValue(e)
		}
		return out
	case []any:
		if v == nil {
			return v
		}
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = copyValue(e)
		}
		return out
	case json.RawMessage:
		return append(json.RawMessage(nil), v...)
	default:
		return v
	}
}

// ClusterRequirements select clusters.
type ClusterRequirements struct {
	// regions this must run in.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Regions []RegionRequirement `json:"regions"`

	// capabilities every chosen cluster must offer. Absent means none.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	Capabilities []string `json:"capabilities,omitempty"`
}

// RegionRequirement is one region and how many of its clusters are wanted.
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

// RolloutStrategy is a list of steps. The last one completes the release.
type RolloutStrategy struct {
	// steps in the order they are meant to be taken; users move between them with a Release's targetStep.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Steps []RolloutStrategyStep `json:"steps"`
}

// RolloutStrategyStep is one stage of a rollout.
type RolloutStrategyStep struct {
	// name is for people: staging, canary, full on.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// capacity is the percentage of the chart's replicas that each side has at this step.
	// +kubebuilder:validation:XValidation:rule="self.incumbent <= 100 && self.contender <= 100",message="capacity is a percentage: use a number from 0 to 100"
	Capacity RolloutStrategyStepValue `json:"capacity"`

	// traffic is the weight each side has at this step, relative to the other; the two need not sum to 100.
	Traffic RolloutStrategyStepValue `json:"traffic"`

	// readinessGates are types of conditions, example.com/Verified, that others than Shipper own in the Release's
	// status.conditions: all must be True before this step counts as achieved. A step that was achieved asks for them no more,
	// and nothing that goes back waits for them. Absent means none. The original had no such field.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=317
	ReadinessGates []string `json:"readinessGates,omitempty"`
}

// RolloutStrategyStepValue is a number for each side of a rollout.
type RolloutStrategyStepValue struct {
	// incumbent is the value for the release that is being replaced.
	// +kubebuilder:validation:Minimum=0
	Incumbent int32 `json:"incumbent"`

	// contender is the value for the release that is being rolled out.
	// +kubebuilder:validation:Minimum=0
	Contender int32 `json:"contender"`
}
