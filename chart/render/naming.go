// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"errors"

	"helm.sh/helm/v3/pkg/chartutil"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
)

// Naming decides how the objects of a new Application are named: by Release if the chart fits the rules of the original for t, whose
// Naming is ignored, and by Application otherwise. A chart that renders to nothing is named by Application, which fits whatever comes
// later. Faults of the chart are no error; the end of ctx is.
func (c *Chart) Naming(ctx context.Context, from *shipper.ChartValues, t Target) (shipper.ChartNaming, error) {
	t.Naming = "" // as in Releases by Release, so that what is rendered here is used again
	manifest, err := c.Render(ctx, from, t)
	if err == nil {
		if manifest.nothing() {
			return shipper.NamingByApplication, nil
		}
		_, err = manifest.Prepare(t)
	}
	failure, ok := errors.AsType[*chart.Error](err)
	switch {
	case err == nil:
		return shipper.NamingByRelease, nil
	case ok && !failure.Retry:
		return shipper.NamingByApplication, nil
	default:
		return "", err
	}
}

// releaseOptions are what templates see of the release. By Release, each Release is a first installation for them.
func (t Target) releaseOptions() chartutil.ReleaseOptions {
	if t.Naming != shipper.NamingByApplication {
		return chartutil.ReleaseOptions{Name: t.ReleaseName, Namespace: t.Namespace, Revision: 1, IsInstall: true}
	}
	revision := max(t.Revision, 1)
	return chartutil.ReleaseOptions{
		Name: t.App, Namespace: t.Namespace, Revision: revision, IsInstall: revision == 1, IsUpgrade: revision > 1,
	}
}
