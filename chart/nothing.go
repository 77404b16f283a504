// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"

	"helm.sh/helm/v3/pkg/chartutil"
)

// nothing tells whether there is neither an object nor a hook. Such a chart is rolled out, too: it is how an Application is
// emptied, by the steps of its strategy.
func (m Manifest) nothing() bool { return len(m.Objects) == 0 && len(m.hooks) == 0 }

// nothingAnywhere is nil when a chart that rendered to nothing does so whatever APIs a cluster has. Pods are counted before it is
// known what clusters are capable of. Where one had something after all, a rollout of no Pods would be taken for complete.
func (c *Chart) nothingAnywhere(ctx context.Context, values map[string]any, t Target, on *chartutil.Capabilities) error {
	usual := on.Copy()
	usual.APIVersions = chartutil.DefaultVersionSet
	for _, shown := range []any{usual, capable{Capabilities: on}} {
		manifest, err := c.once(ctx, values, t, on, shown)
		if err != nil {
			return err
		}
		if !manifest.nothing() {
			return wrongDeployments("it renders to nothing or to something depending on what APIs the cluster has; " +
				"it must have exactly one Deployment in every cluster, or nothing by its values alone")
		}
	}
	return nil
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
