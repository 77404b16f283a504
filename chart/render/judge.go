// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/chart/values"
)

// Judge renders a Release of this chart as for its installation in a cluster, and says all at once what keeps it from being rolled out
// there: an *chart.Error without Retry, as the installation would say it. Doubts are what users are warned of. Other errors say nothing
// about the chart.
func (c *Chart) Judge(ctx context.Context, rel *shipper.Release, in Cluster) (doubts []string, err error) {
	from, err := values.LayersOf(&rel.Spec.Environment).At(in.Place)
	if err != nil {
		return nil, err
	}
	t := targetOf(rel, in)
	manifest, err := c.Render(ctx, from, t)
	if err != nil {
		return nil, err
	}
	if t.Naming == shipper.NamingByApplication {
		var table lots.Table
		table, err = manifest.Lots(t)
		doubts = table.Warnings
	} else {
		_, err = manifest.Prepare(t)
		doubts = manifest.scaledByOthers()
	}
	doubts = slices.Concat(manifest.Warnings(), doubts)
	_, ofHooks := manifest.Hooks(t)
	if err == nil {
		err = ofHooks
	}
	if err == nil {
		return doubts, nil
	}
	failure := *chart.AsError(err)
	if ofHooks != nil && !errors.Is(err, ofHooks) {
		failure.Message += "; " + ofHooks.Error()
	}
	failure.Message = fmt.Sprintf("chart %q %s: %s", c.Name(), c.Version(), failure.Message)
	return nil, &failure
}

// scaledByOthers names autoscalers of the Deployment: both they and Shipper would set its replicas.
func (m Manifest) scaledByOthers() (doubts []string) {
	at, err := m.deployment()
	if err != nil { // the Manifest is empty
		return nil
	}
	name := m.Objects[at].GetName()
	for i := range m.Objects {
		o := &m.Objects[i]
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "scaleTargetRef", "kind")
		target, _, _ := unstructured.NestedString(o.Object, "spec", "scaleTargetRef", "name")
		if (kind == "Deployment" || kind == "") && target == name {
			doubts = append(doubts, fmt.Sprintf("%s scales the Deployment %s, which Shipper does too, step by step: "+
				"leave it out of the chart, or disable it by a value", m.source(i), name))
		}
	}
	return doubts
}
