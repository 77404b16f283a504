// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/engine"
)

const (
	// maxValues bounds the values of one release. An API server stores no object half as large.
	maxValues = 4 << 20
	// maxRenderTime bounds one rendering, but not how long it waits for its turn: what bounds that is the caller's ctx.
	maxRenderTime = 30 * time.Second
	// recentKubeVersion is assumed when the cluster's is not known; it goes with the APIs that Helm then assumes.
	recentKubeVersion = "v1.37.0"
)

// Render runs the chart's templates with values for t, in Helm's way of a first installation. Hooks are apart
// from what is installed, and those that Shipper does not run are refused. A chart without exactly one apps/v1 Deployment is an
// error, unless there is nothing at all. The result holds nothing of t's labels: Prepare and Hooks put them on. It may be shared with
// others who ask for the same, and must not be changed.
func (c *Chart) Render(ctx context.Context, values *shipper.ChartValues, t Target) (Manifest, error) {
	given := map[string]any{}
	if values != nil {
		if size := sizeOf(map[string]any(*values), maxValues); size > maxValues {
			return Manifest{}, chartError("the values take more than the %s that are accepted", mebibytes(maxValues))
		}
		given = *values
	}
	manifest, err := c.inTurn(ctx, given, t)
	if err != nil {
		told := *asError(err)
		told.Message = fmt.Sprintf("chart %q %s: %s", c.Name(), c.Version(), told.Message)
		told.open = fmt.Sprintf("chart %q %s: %s", c.Name(), c.Version(), cmp.Or(told.open, "it cannot be rendered with these values"))
		return Manifest{}, &told
	}
	return manifest, nil
}

// inTurn renders when there is room for one more, unless what comes of it is remembered.
func (c *Chart) inTurn(ctx context.Context, values map[string]any, t Target) (Manifest, error) {
	key := c.renderKey(values, t)
	if known, ok := c.renders.done.get(key); ok {
		return known, nil
	}
	if err := c.renders.room.Enter(ctx, t.Namespace); err != nil {
		return Manifest{}, late(err)
	}
	defer c.renders.room.Leave(t.Namespace)
	if known, ok := c.renders.done.get(key); ok { // while it was waited for
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, maxRenderTime)
	defer cancel()
	manifest, err := c.render(ctx, values, t)
	if err == nil {
		c.renders.done.put(key, manifest, manifest.size())
	}
	return manifest, err
}

// render does the work of Render. Whatever the chart makes panic is an error of the chart.
func (c *Chart) render(ctx context.Context, values map[string]any, t Target) (manifest Manifest, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = chartError("it cannot be rendered: %s", shorten(fmt.Sprint(caught)))
		}
	}()
	if strings.EqualFold(c.helm.Metadata.Type, "library") {
		return Manifest{}, chartError("it is a library, which has nothing to install")
	}
	capabilities, err := t.capabilities()
	if err != nil {
		return Manifest{}, err
	}
	if wants := c.helm.Metadata.KubeVersion; !t.satisfies(wants) {
		err := chartError("it requires Kubernetes %s, and this cluster has %s", wants, t.KubeVersion)
		return Manifest{}, err.openly("%s", err.Message)
	}
	manifest, err = c.once(ctx, values, t, capabilities, capabilities)
	switch {
	case err != nil:
		return Manifest{}, err
	case manifest.nothing():
		return manifest, c.nothingAnywhere(ctx, values, t, capabilities)
	}
	return manifest, manifest.checkDeployment()
}

// once renders for a cluster that is capable of what is said; shown is what the templates see of that.
func (c *Chart) once(
	ctx context.Context, values map[string]any, t Target, on *chartutil.Capabilities, shown any,
) (Manifest, error) {
	work := copyChart(c.helm)
	if err := packed(work); err != nil {
		return Manifest{}, err
	}
	files, err := execute(ctx, work, values, t, on, shown)
	if err != nil {
		return Manifest{}, err
	}
	return assemble(work, files)
}

// execute runs the templates and returns what each file renders to.
func execute(
	ctx context.Context, c *helmchart.Chart, values map[string]any, t Target, on *chartutil.Capabilities, shown any,
) (map[string]string, error) {
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		return nil, chartError("its dependencies cannot be processed: %s", shorten(err.Error()))
	}
	options := chartutil.ReleaseOptions{Name: t.ReleaseName, Namespace: t.Namespace, Revision: 1, IsInstall: true}
	scope, err := chartutil.ToRenderValuesWithSchemaValidation(c, values, options, on, true)
	if err != nil {
		return nil, chartError("the values do not fit it: %s", shorten(err.Error()))
	}
	if merged, ok := scope["Values"].(chartutil.Values); ok {
		if err := checkSchemas(c, merged); err != nil {
			return nil, err
		}
	}
	scope["Capabilities"] = shown
	files, err := engine.Render(ctx, c, scope)
	if ended := ctx.Err(); ended != nil {
		return nil, late(ended)
	}
	if err != nil {
		return nil, chartError("it does not render: %s", limit(err.Error(), 1000)).openly("it does not render%s", placeOf(err))
	}
	return files, nil
}

// inTemplate is how an error of the engine begins that knows its place in the chart: with the name of a file, and the line.
var inTemplate = regexp.MustCompile(`^[^\s:]+:[0-9]+(:[0-9]+)?:`)

// placeOf says where in the chart an error of the engine is, if that is known.
func placeOf(err error) string {
	if at := inTemplate.FindString(err.Error()); at != "" {
		return ", at " + strings.TrimSuffix(at, ":")
	}
	return ""
}

// late is a failure that another time may not see.
func late(cause error) *Error {
	const said = "it did not render in time"
	return &Error{Reason: shipper.ChartError, Message: said, Retry: true, Cause: cause, open: said}
}

// capabilities are what the templates may know of the cluster.
func (t Target) capabilities() (*chartutil.Capabilities, error) {
	version := orDefault(t.KubeVersion, recentKubeVersion)
	parsed, err := chartutil.ParseKubeVersion(version)
	if err != nil {
		return nil, chartError("the cluster's version %q is not one of Kubernetes", shorten(version))
	}
	parsed.Version = "v" + strings.TrimPrefix(version, "v")
	on := chartutil.DefaultCapabilities.Copy()
	on.KubeVersion = *parsed
	if len(t.APIVersions) > 0 {
		on.APIVersions = t.APIVersions
	}
	return on, nil
}

// satisfies reports whether the cluster has a version in the range that a chart asks for. What providers add behind their
// versions, which a range would take for a prerelease, does not count against it.
func (t Target) satisfies(wants string) bool {
	if wants == "" || t.KubeVersion == "" || chartutil.IsCompatibleRange(wants, t.KubeVersion) {
		return true
	}
	parsed, err := chartutil.ParseKubeVersion(t.KubeVersion)
	return err == nil && chartutil.IsCompatibleRange(wants, parsed.Version)
}

// packed refuses a chart whose subcharts are not in its archive.
func packed(c *helmchart.Chart) error {
	for _, wanted := range c.Metadata.Dependencies {
		found := false
		for _, child := range c.Dependencies() {
			found = found || child.Name() == wanted.Name
		}
		if !found {
			return chartError("its dependency %q is not in its archive; run `helm dependency build` before packing it",
				wanted.Name)
		}
	}
	return nil
}
