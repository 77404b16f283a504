// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"

	"github.com/Masterminds/semver/v3"
	helmchart "helm.sh/helm/v3/pkg/chart"

	"shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/lots"
)

// Target is the release and the cluster that a chart is rendered for.
type Target struct {
	// Naming decides what .Release.Name is, and what exists once per Release. Empty: by Release.
	Naming shipper.ChartNaming `json:",omitempty"`
	// ReleaseName is the name of the Release, and of its InstallationTarget: by Release, the templates' .Release.Name.
	ReleaseName string
	// Namespace is the Release's namespace: the templates' .Release.Namespace.
	Namespace string
	// App is the name of the Application: by Application, the templates' .Release.Name.
	App string
	// Revision is 1 for the first Release of the Application in the cluster, and higher for every later one: by Application, it decides
	// .Release.Revision, .IsInstall and .IsUpgrade. 0 counts as 1.
	Revision int `json:",omitempty"`
	// KubeVersion is the cluster's version, as in "v1.37.1". Empty: a recent version is assumed.
	KubeVersion string
	// APIVersions are the cluster's APIs, as "group/version" and "group/version/Kind". Empty: those of Kubernetes itself.
	APIVersions []string
	// HelmWorkaround is the value of the label enable-helm-release-workaround, empty when there is none.
	HelmWorkaround string
	// Labels are put on every object: those of the Release, its hash among them. Those of Shipper made of App and
	// ReleaseName win over them.
	Labels map[string]string
	// ChartLabels makes labels of the chart win over Labels by Release; by Application they always do. It is no part of the fingerprint of
	// what is installed, and never changes for a Release.
	ChartLabels bool `json:"-"`
	// Lookups are what the function lookup finds in the cluster. Nil: nothing.
	Lookups *Lookups `json:"-"`
	// InUse is what Pods in place use in the cluster. Nil: nothing.
	InUse lots.InUse `json:"-"`
	// Overrides are changes of the rendered objects, before anything else is done to them. They are a part of what a manifest is rendered
	// from: Source of package installation has them.
	Overrides []override.Change `json:"-"`
}

// Chart is one version of a chart, loaded. It is safe for concurrent use.
type Chart struct {
	// helm is never changed: rendering works on a copy.
	helm    *helmchart.Chart
	archive []byte
	digest  string
	// size is what it takes in memory: its archive, and its files.
	size int64
	// renders are its own, and those of the other charts of its Catalog.
	renders *Cache
}

// Name is the name in Chart.yaml.
func (c *Chart) Name() string { return c.helm.Name() }

// Version is the version in Chart.yaml.
func (c *Chart) Version() string { return c.helm.Metadata.Version }

// Digest is the sha256 (hex) of the archive's bytes.
func (c *Chart) Digest() string { return c.digest }

// Size is what the chart takes in memory, in bytes: its archive, and its files.
func (c *Chart) Size() int64 { return c.size }

// Archive is the archive that the chart was read from. It must not be changed.
func (c *Chart) Archive() []byte { return c.archive }

// IsA refuses a chart with another name or version than pinned, whatever its digest.
func (c *Chart) IsA(pinned shipper.Chart) error {
	if c.helm.Name() != pinned.Name {
		return chart.BrokenSpec(nil, "the archive of chart %q %s holds chart %q", chart.Shorten(pinned.Name), chart.Shorten(pinned.Version),
			chart.Shorten(c.helm.Name()))
	}
	want, err := semver.NewVersion(pinned.Version)
	if err != nil {
		return nil // the index has it under that name, which cannot be compared further
	}
	if got, err := semver.NewVersion(c.helm.Metadata.Version); err != nil || !got.Equal(want) {
		return chart.BrokenSpec(nil, "the archive of chart %q %s holds version %s", chart.Shorten(pinned.Name), chart.Shorten(pinned.Version),
			chart.Shorten(c.helm.Metadata.Version))
	}
	return nil
}

// copyChart copies what rendering changes: the tree of dependencies, their conditions and values. Files are shared.
func copyChart(c *helmchart.Chart) *helmchart.Chart {
	metadata := *c.Metadata
	metadata.Dependencies = make([]*helmchart.Dependency, 0, len(c.Metadata.Dependencies))
	for _, d := range c.Metadata.Dependencies {
		if d != nil {
			dependency := *d
			metadata.Dependencies = append(metadata.Dependencies, &dependency)
		}
	}
	if c.Metadata.Dependencies == nil {
		metadata.Dependencies = nil
	}
	metadata.Annotations = maps.Clone(c.Metadata.Annotations)
	out := &helmchart.Chart{
		Metadata: &metadata, Lock: c.Lock, Templates: c.Templates, Schema: c.Schema, Files: c.Files,
		Values: copyValues(c.Values),
	}
	for _, child := range c.Dependencies() {
		out.AddDependency(copyChart(child))
	}
	return out
}

// copyValues copies values, nested maps and lists included.
func copyValues(values map[string]any) map[string]any {
	if values == nil {
		return nil
	}
	copied := make(map[string]any, len(values))
	for key, value := range values {
		copied[key] = copyValue(value)
	}
	return copied
}

func copyValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return copyValues(value)
	case []any:
		copied := make([]any, len(value))
		for i, item := range value {
			copied[i] = copyValue(item)
		}
		return copied
	default:
		return value
	}
}
