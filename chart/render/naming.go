// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"errors"

	"helm.sh/helm/v3/pkg/chartutil"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
)

// Naming is how several Releases of an Application exist beside each other in a cluster.
type Naming string

const (
	// ByRelease shows templates the name of the Release. The chart puts it into the name of its one Deployment, and not into that of its
	// production Service. These are the rules of the original.
	ByRelease Naming = "Release"
	// ByApplication shows templates the name of the Application, as after `helm install`. Shipper renames what has to exist once per
	// Release.
	ByApplication Naming = "Application"
)

// Naming decides how the objects of a new Application are named: by Release if the chart fits the rules of the original for t, whose
// Naming is ignored, and by Application otherwise. A chart that renders to nothing is named by Application, which fits whatever comes
// later. Faults of the chart are no error; the end of ctx is.
func (c *Chart) Naming(ctx context.Context, from *shipper.ChartValues, t Target) (Naming, error) {
	t.Naming = ByRelease
	manifest, err := c.Render(ctx, from, t)
	if err == nil {
		if manifest.nothing() {
			return ByApplication, nil
		}
		_, err = manifest.Prepare(t)
	}
	failure, ok := errors.AsType[*chart.Error](err)
	switch {
	case err == nil:
		return ByRelease, nil
	case ok && !failure.Retry:
		return ByApplication, nil
	default:
		return "", err
	}
}

// releaseOptions are what templates see of the release. By Release, each Release is a first installation for them.
func (t Target) releaseOptions() chartutil.ReleaseOptions {
	if t.Naming != ByApplication {
		return chartutil.ReleaseOptions{Name: t.ReleaseName, Namespace: t.Namespace, Revision: 1, IsInstall: true}
	}
	revision := max(t.Revision, 1)
	return chartutil.ReleaseOptions{
		Name: t.App, Namespace: t.Namespace, Revision: revision, IsInstall: revision == 1, IsUpgrade: revision > 1,
	}
}
