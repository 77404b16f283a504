// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Target is the release and the cluster that a chart is rendered for.
type Target struct {
	// ReleaseName is the name of the Release, and of its InstallationTarget: the templates' .Release.Name.
	ReleaseName string
	// Namespace is the Release's namespace: the templates' .Release.Namespace.
	Namespace string
	// App is the name of the Application.
	App string
	// KubeVersion is the cluster's version, as in "v1.37.1". Empty: a recent version is assumed.
	KubeVersion string
	// APIVersions are the cluster's APIs, as "group/version" and "group/version/Kind". Empty: those of Kubernetes itself.
	APIVersions []string
	// HelmWorkaround is the value of the label enable-helm-release-workaround, empty when there is none.
	HelmWorkaround string
	// Labels are put on every object, the hash of the release among them. Labels of App and ReleaseName win over them.
	Labels map[string]string
}

// Chart is one version of a chart, loaded. It is safe for concurrent use.
type Chart struct{}

// Digest is the sha256 (hex) of the archive's bytes.
func (c *Chart) Digest() string { return "" }

// Render runs the chart's templates with values for t. A chart without exactly one apps/v1 Deployment is an error.
func (c *Chart) Render(_ context.Context, _ *shipper.ChartValues, _ Target) (Manifest, error) {
	return Manifest{}, errors.ErrUnsupported
}

// Manifest is what a chart renders to.
type Manifest struct {
	// Objects are in Helm's install order, CustomResourceDefinitions of the chart's crds folder first.
	Objects []unstructured.Unstructured
}

// Replicas is the number of replicas of the one Deployment as the chart has it; 1 when the chart does not say.
func (m Manifest) Replicas() int32 { return 1 }

// Prepare returns the objects as installation writes them.
func (m Manifest) Prepare(_ Target) ([]unstructured.Unstructured, error) { return nil, errors.ErrUnsupported }
