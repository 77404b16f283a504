// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "encoding/json"

// Chart names a version of a Helm chart in a repository, or contains a chart's archive.
type Chart struct {
	// name of the chart in the repository's index. An Application with an archive may leave it out.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// version is an exact version or, in an Application, a SemVer constraint that is resolved in place when the object is
	// admitted; the constraint is kept in the annotation shipper.booking.com/app.chart.version.raw.
	// Empty or absent means the newest stable version or, with an archive, the archive's version.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Version string `json:"version"`

	// repoUrl is the http or https URL of the folder with the repository's index.yaml, or an OCI registry as oci://host/path, where
	// path/name is the chart and its tags are the versions. Required without an archive.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	RepoURL string `json:"repoUrl"`

	// archive is the chart itself, instead of a repository: the output of `helm package` in base64, at most 512 KiB before encoding.
	// The webhook opens it when it admits the Application. InstallationTargets and ChartSnapshots do not repeat it.
	// +optional
	// +kubebuilder:validation:MaxLength=699052
	Archive string `json:"archive,omitempty"`

	// credentials for the repository. The user who names them needs the right to get their Secret. So does Shipper, by a RoleBinding
	// in the namespace to the ClusterRole shipper-namespace-reader. Absent means that the repository is public, or that its URL has
	// the credentials.
	// +optional
	Credentials ChartCredentials `json:"credentials,omitzero"`

	// verify demands a signature: Shipper installs an archive only after it has found a Helm provenance file (.prov) signed by one
	// of these keys. Absent means that signatures are not checked. The original had no such field.
	// +optional
	Verify ChartVerification `json:"verify,omitzero"`

	// provenance is the .prov file of archive, as text. A repository has it beside the archive; leave this out then.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Provenance string `json:"provenance,omitempty"`

	// naming is how objects of several Releases are told apart in a cluster. Application: templates see the Application's name, and Shipper
	// adds a suffix to what each Release has for itself. Release: templates see the Release's name, and the chart must put it into the name
	// of its one Deployment. Absent in an Application: decided by the chart when its first Release is made; later Releases follow, and
	// another value is refused. Absent in a Release: Release. The original had no such field.
	// +optional
	Naming ChartNaming `json:"naming,omitempty"`
}

// ChartNaming is how the objects of a chart are named.
// +kubebuilder:validation:Enum=Release;Application
type ChartNaming string

const (
	// NamingByRelease shows templates the name of the Release. The chart puts it into the name of its one Deployment, and not into that of
	// its production Service. These are the rules of the original.
	NamingByRelease ChartNaming = "Release"
	// NamingByApplication shows templates the name of the Application, as after `helm install`. Shipper renames what has to exist once per
	// Release.
	NamingByApplication ChartNaming = "Application"
)

// ChartVerification names the keys of which one must have signed a chart.
type ChartVerification struct {
	// secretName is the name of a Secret in the namespace of the Application. Its key pubring.gpg has the public keys, as
	// `gpg --export` writes them, with or without --armor. The user who names the Secret needs the right to get it. So does Shipper,
	// by a RoleBinding in the namespace to the ClusterRole shipper-namespace-reader.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// signer is the fingerprint of the only accepted key; its subkeys are accepted, too. 40 or 64 of the characters 0-9 and A-F, as
	// `gpg --list-keys` prints them. Absent means that all keys of the Secret are accepted.
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9A-F]{40}|[0-9A-F]{64})$`
	Signer string `json:"signer,omitempty"`
}

// ChartCredentials name the Secret with the credentials for a repository.
type ChartCredentials struct {
	// secretName is the name of a Secret in the namespace of the Application. The Secret needs the label
	// shipper.booking.com/repository-credentials: "true" and the annotation shipper.booking.com/repository-url with a URL that
	// repoUrl equals or is below. Shipper uses its keys only for that URL: username and password, or token; tls.crt and tls.key for
	// client certificates; ca.crt with the CAs of that server.
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

// copyValue copies any JSON value. Scalars need no copy.
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
