// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"errors"

	"helm.sh/helm/v3/pkg/chartutil"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
)

// nothing reports whether there is neither an object nor a hook. Such a chart is rolled out, too: it is how a user empties an
// Application, by the steps of its strategy.
func (m Manifest) nothing() bool { return len(m.Objects) == 0 && len(m.hooks) == 0 }

// nothingAnywhere is nil when a chart that rendered to nothing does so for any version and APIs of a cluster. Pods are counted
// before the clusters' capabilities are known: if one cluster had objects, a rollout of no Pods would count as complete.
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
		if failure, ok := errors.AsType[*chart.Error](err); ok && failure.Reason == shipper.ChartError && !failure.Retry {
			continue // it fails on such a cluster, with an error there
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sameWithout is nil when a chart that has found objects renders to nothing with them and without them, or to something. At admission,
// where Pods are counted, it finds none.
func (c *Chart) sameWithout(ctx context.Context, values map[string]any, t Target, on *chartutil.Capabilities, nothing bool) error {
	if t.Lookups == nil || len(t.Lookups.found) == 0 {
		return nil
	}
	t.Lookups = nil
	without, err := c.once(ctx, values, t, on, on)
	if failure, ok := errors.AsType[*chart.Error](err); ok && failure.Retry {
		return err
	}
	if err != nil || without.nothing() == nothing {
		return nil // one that fails without them has been refused at admission
	}
	return t.sometimesNothing("what it looks up")
}

// sometimesNothing refuses a chart.
func (t Target) sometimesNothing(depending string) error {
	if t.Naming == shipper.NamingByApplication {
		return chartError("it renders to nothing or to something depending on %s; "+
			"it must render to something in every cluster, or to nothing by its values alone", depending)
	}
	return wrongDeployments("it renders to nothing or to something depending on %s; "+
		"it must have exactly one Deployment in every cluster, or nothing by its values alone", depending)
}

// oldest and newest are beyond the versions of all clusters. A chart that requires some minimum version renders differently for
// the two.
var (
	oldest = chartutil.KubeVersion{Version: "v1.0.0", Major: "1", Minor: "0"}
	newest = chartutil.KubeVersion{Version: "v1.999.0", Major: "1", Minor: "999"}
)

// nothingOn is nil when a chart renders to nothing on such a cluster.
func (c *Chart) nothingOn(ctx context.Context, values map[string]any, t Target, on *chartutil.Capabilities, shown any) error {
	manifest, err := c.once(ctx, values, t, on, shown)
	if err != nil || manifest.nothing() {
		return err
	}
	return t.sometimesNothing("what version or APIs the cluster has")
}

// capable is a cluster that has every API.
type capable struct {
	*chartutil.Capabilities
	APIVersions everyAPI
}

// everyAPI replaces the set of APIs in templates.
type everyAPI []string

// Has is the method that templates call.
func (everyAPI) Has(string) bool { return true }
