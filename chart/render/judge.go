// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/values"
)

// Judge renders a Release of this chart as for an installation in a place. An *chart.Error without Retry is certain: no cluster can run
// it. Doubts are warnings: only some clusters may refuse it, or it conflicts with Shipper. Other errors say nothing about the
// chart.
func (c *Chart) Judge(ctx context.Context, rel *shipper.Release, in values.Place) (doubts []string, err error) {
	values, err := values.LayersOf(&rel.Spec.Environment).At(in)
	if err != nil {
		return nil, err
	}
	target := Target{
		Naming: rel.Spec.Environment.Chart.Naming, ReleaseName: rel.Name, Namespace: rel.Namespace, App: rel.Labels[shipper.AppLabel],
		HelmWorkaround: rel.Labels[shipper.HelmWorkaroundLabel], Labels: rel.Labels,
	}
	doubts, err = c.judge(ctx, values, target)
	asks := c.asksCluster(values) || !target.satisfies(c.helm.Metadata.KubeVersion)
	if failure, ok := errors.AsType[*chart.Error](err); ok && !failure.Retry && asks {
		return []string{failure.Message + "; in clusters of other versions or APIs it may be otherwise"}, nil
	}
	return doubts, err
}

func (c *Chart) judge(ctx context.Context, values *shipper.ChartValues, t Target) (doubts []string, err error) {
	manifest, err := c.Render(ctx, values, t)
	if err != nil {
		return nil, err
	}
	if _, err := manifest.Prepare(t); err != nil {
		failure := *chart.AsError(err)
		failure.Message = fmt.Sprintf("chart %q %s: %s", c.Name(), c.Version(), failure.Message)
		return nil, &failure
	}
	return manifest.scaledByOthers(), nil
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

// capabilities is the name under which templates read a cluster's version and APIs.
const capabilities = "Capabilities"

// asksCluster reports whether the result of a chart may depend on a cluster's version or APIs. Values and files may contain
// templates.
func (c *Chart) asksCluster(values *shipper.ChartValues) bool {
	given, err := json.Marshal(values)
	return err != nil || bytes.Contains(given, []byte(capabilities)) || asksCluster(c.helm)
}

func asksCluster(c *helmchart.Chart) bool {
	asks := func(f *helmchart.File) bool { return bytes.Contains(f.Data, []byte(capabilities)) }
	defaults, err := json.Marshal(c.Values)
	return err != nil || bytes.Contains(defaults, []byte(capabilities)) || slices.ContainsFunc(c.Templates, asks) ||
		slices.ContainsFunc(c.Files, asks) || slices.ContainsFunc(c.Dependencies(), asksCluster)
}
