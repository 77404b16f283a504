// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"

	"helm.sh/helm/v3/pkg/chartutil"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// nothing reports whether there is neither an object nor a hook. Such a chart is rolled out, too: it is how an Application is
// emptied, by the steps of its strategy.
func (m Manifest) nothing() bool { return len(m.Objects) == 0 && len(m.hooks) == 0 }

// nothingAnywhere is nil when a chart that rendered to nothing does so whatever version and APIs a cluster has. Pods are counted
// before it is known what clusters are capable of. Where one had something after all, a rollout of no Pods would be taken for complete.
func (c *Chart) nothingAnywhere(ctx context.Context, values map[string]any, t Target, on *chartutil.Capabilities) error {
	usual := on.Copy()
	usual.APIVersions = chartutil.DefaultVersionSet
	for _, shown := range []any{usual, capable{Capabilities: on}} {
		if err := c.nothingOn(ctx, values, t, on, shown); err != nil {
			return err
		}
	}
	for _, version := range []chartutil.KubeVersion{oldest, newest} {
		other := on.Copy()
		other.KubeVersion = version
		err := c.nothingOn(ctx, values, t, other, other)
		if told, ok := errors.AsType[*Error](err); ok && told.Reason == shipper.ChartError && !told.Retry {
			continue // it does without such a cluster: there it would say so
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// oldest and newest are beyond all versions that clusters have. A chart that asks whether a cluster has some version or a later one
// gets another answer from one than from the other.
var (
	oldest = chartutil.KubeVersion{Version: "v1.0.0", Major: "1", Minor: "0"}
	newest = chartutil.KubeVersion{Version: "v1.999.0", Major: "1", Minor: "999"}
)

// nothingOn is nil when a chart renders to nothing for what templates are shown of a cluster.
func (c *Chart) nothingOn(ctx context.Context, values map[string]any, t Target, on *chartutil.Capabilities, shown any) error {
	manifest, err := c.once(ctx, values, t, on, shown)
	if err == nil && !manifest.nothing() {
		err = wrongDeployments("it renders to nothing or to something depending on what version or APIs the cluster has; " +
			"it must have exactly one Deployment in every cluster, or nothing by its values alone")
	}
	return err
}

// capable is a cluster that has every API.
type capable struct {
	*chartutil.Capabilities
	APIVersions everyAPI
}

// everyAPI stands where templates expect a set of APIs.
type everyAPI []string

// Has is what templates call.
func (everyAPI) Has(string) bool { return true }
