// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/render/engine"
	"shipper.dev/shipper/chart/values"
)

const (
	// maxRenderTime bounds one rendering in its slot. Package engine bounds its work, which takes a processor some seconds: this is for a
	// machine that does much else.
	maxRenderTime = 30 * time.Second
	// maxWait bounds the wait for a slot of a chart that looks up. The wait of others is bounded by their ctx.
	maxWait = 5 * time.Second
	// recentKubeVersion is assumed when the cluster's version is unknown; Helm then assumes the APIs of that version.
	recentKubeVersion = "v1.37.0"
)

// Render runs the chart's templates with values for t, as Helm's first installation does. Hooks are separate from the objects
// to install, and those that Shipper does not run are refused. By Release, it fails without exactly one apps/v1 Deployment, unless
// the result is empty. The result is shared, must not be changed, and lacks t's labels: Prepare and Hooks add them.
func (c *Chart) Render(ctx context.Context, from *shipper.ChartValues, t Target) (Manifest, error) {
	given := map[string]any{}
	if from != nil {
		if size := values.SizeOf(map[string]any(*from), values.MaxBytes); size > values.MaxBytes {
			return Manifest{}, chartError("the values take more than the %s that are accepted", chart.Mebibytes(values.MaxBytes))
		}
		given = *from
	}
	manifest, err := c.inTurn(ctx, given, t)
	if err != nil {
		failure := *chart.AsError(err)
		failure.Message = fmt.Sprintf("chart %q %s: %s", c.Name(), c.Version(), failure.Message)
		failure.Public = fmt.Sprintf("chart %q %s: %s", c.Name(), c.Version(), cmp.Or(failure.Public, "it cannot be rendered with these values"))
		return Manifest{}, &failure
	}
	return manifest, nil
}

// inTurn returns the cached result, or renders in a slot. A rendering continues when its caller leaves, so that a later call finds it: on
// a busy machine, a large chart may take longer than any caller can wait. One with lookups does not, because its result is the caller's.
func (c *Chart) inTurn(ctx context.Context, values map[string]any, t Target) (Manifest, error) {
	key := c.renderKey(values, t)
	if known, ok := c.renders.done.Get(key); ok && !t.Lookups.used() {
		return known.Manifest, known.err
	}
	if err := c.enter(ctx, t); err != nil {
		return Manifest{}, err
	}
	if known, ok := c.renders.done.Get(key); ok && !t.Lookups.used() { // rendered while this waited
		c.renders.room.Leave(t.Namespace)
		return known.Manifest, known.err
	}
	if t.Lookups != nil {
		return c.inSlot(ctx, key, values, t)
	}
	var manifest Manifest
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		manifest, err = c.inSlot(context.WithoutCancel(ctx), key, values, t)
	}()
	select {
	case <-done:
		return manifest, err
	case <-ctx.Done():
		return Manifest{}, late(ctx.Err())
	}
}

// enter waits for a slot. One who looks up holds up others of a cluster, and does not wait for long.
func (c *Chart) enter(ctx context.Context, t Target) error {
	if t.Lookups == nil {
		if err := c.renders.room.Enter(ctx, t.Namespace); err != nil {
			return late(err)
		}
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	if err := c.renders.room.Enter(bounded, t.Namespace); err != nil {
		const said = "it waits for other charts that are being rendered"
		return &chart.Error{Reason: shipper.InProgress, Message: said, Public: said, Retry: true, Cause: err}
	}
	return nil
}

// inSlot renders, caches the result, and leaves the slot. A failure of the chart is a result, too: the caller may have left.
func (c *Chart) inSlot(ctx context.Context, key [sha256.Size]byte, values map[string]any, t Target) (Manifest, error) {
	defer c.renders.room.Leave(t.Namespace)
	ctx, cancel := context.WithTimeout(ctx, maxRenderTime)
	defer cancel()
	manifest, err := c.render(ctx, values, t)
	failure, ofChart := errors.AsType[*chart.Error](err)
	if err == nil && !t.Lookups.used() || ofChart && !failure.Retry && t.Lookups == nil {
		c.renders.done.Put(key, result{manifest, err}, manifest.size())
	}
	return manifest, err
}

// render does the work of Render. A panic becomes an error of the chart.
func (c *Chart) render(ctx context.Context, values map[string]any, t Target) (manifest Manifest, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = chartError("it cannot be rendered: %s", chart.Shorten(fmt.Sprint(caught)))
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
		return Manifest{}, err.WithPublic("%s", err.Message)
	}
	manifest, err = c.once(ctx, values, t, capabilities, capabilities)
	if err == nil {
		err = c.sameWithout(ctx, values, t, capabilities, manifest.nothing())
	}
	switch {
	case err != nil:
		return Manifest{}, err
	case manifest.nothing():
		return manifest, c.nothingAnywhere(ctx, values, t, capabilities)
	case t.Naming == shipper.NamingByApplication:
		manifest.naming = shipper.NamingByApplication
		return manifest, nil
	}
	return manifest, manifest.checkDeployment()
}

// once renders for a cluster with these capabilities; shown is what templates see of them.
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
	return assemble(ctx, work, files, t)
}

// execute runs the templates and returns the result of each file.
func execute(
	ctx context.Context, c *helmchart.Chart, values map[string]any, t Target, on *chartutil.Capabilities, shown any,
) (map[string]string, error) {
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		return nil, chartError("its dependencies cannot be processed: %s", chart.Shorten(err.Error()))
	}
	scope, err := chartutil.ToRenderValuesWithSchemaValidation(c, values, t.releaseOptions(), on, true)
	if err != nil {
		return nil, chartError("the values do not fit it: %s", chart.Shorten(err.Error()))
	}
	if merged, ok := scope["Values"].(chartutil.Values); ok {
		if err := checkSchemas(c, merged); err != nil {
			return nil, err
		}
	}
	scope["Capabilities"] = shown
	files, err := engine.RenderIn(ctx, c, scope, t.Lookups.in(t.Namespace))
	if ended := ctx.Err(); ended != nil {
		return nil, late(ended)
	}
	if err != nil {
		return nil, chartError("it does not render: %s", chart.Limit(err.Error(), 1000)).WithPublic("it does not render%s", placeOf(err))
	}
	return files, nil
}

// inTemplate matches the place at the beginning of an engine's error: the name of a file, and the line.
var inTemplate = regexp.MustCompile(`^[^\s:]+:[0-9]+(:[0-9]+)?:`)

// placeOf is the place in the chart of an engine's error, if it has one.
func placeOf(err error) string {
	if at := inTemplate.FindString(err.Error()); at != "" {
		return ", at " + strings.TrimSuffix(at, ":")
	}
	return ""
}

// late is a failure that may be temporary.
func late(cause error) *chart.Error {
	const said = "it did not render in time"
	return &chart.Error{Reason: shipper.ChartError, Message: said, Retry: true, Cause: cause, Public: said}
}

// capabilities are the properties of the cluster for templates.
func (t Target) capabilities() (*chartutil.Capabilities, error) {
	version := cmp.Or(t.KubeVersion, recentKubeVersion)
	parsed, err := chartutil.ParseKubeVersion(version)
	if err != nil {
		return nil, chartError("the cluster's version %q is not one of Kubernetes", chart.Shorten(version))
	}
	parsed.Version = "v" + strings.TrimPrefix(version, "v")
	on := chartutil.DefaultCapabilities.Copy()
	on.KubeVersion = *parsed
	if len(t.APIVersions) > 0 {
		on.APIVersions = t.APIVersions
	}
	return on, nil
}

// satisfies reports whether the cluster's version is in the range that a chart requires. It ignores suffixes of providers,
// which the range would treat as a prerelease.
func (t Target) satisfies(wants string) bool {
	if wants == "" || t.KubeVersion == "" || chartutil.IsCompatibleRange(wants, t.KubeVersion) {
		return true
	}
	parsed, err := chartutil.ParseKubeVersion(t.KubeVersion)
	return err == nil && chartutil.IsCompatibleRange(wants, parsed.Version)
}

// packed refuses a chart whose archive lacks a subchart.
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
