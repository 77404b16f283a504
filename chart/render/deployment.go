// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"math"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/lots"
)

// deployment finds the one Deployment.
func (m Manifest) deployment() (int, error) {
	at := -1
	var names []string
	for i := range m.Objects {
		gvk := m.Objects[i].GroupVersionKind()
		if gvk.Kind != "Deployment" || (gvk.Group != "apps" && gvk.Group != "extensions") {
			continue
		}
		if gvk.Group != "apps" || gvk.Version != "v1" {
			return -1, wrongDeployments("%s has the apiVersion %s; Shipper rolls out Deployments of apps/v1 only",
				m.source(i), gvk.GroupVersion())
		}
		at = i
		names = append(names, m.Objects[i].GetName())
	}
	if len(names) != 1 {
		listed := ""
		if len(names) > 0 {
			listed = " (" + chart.Shorten(strings.Join(names, ", ")) + ")"
		}
		return -1, wrongDeployments("it must have exactly one Deployment, but %d are found%s", len(names), listed).
			WithPublic("it must have exactly one Deployment, but %d are found", len(names))
	}
	return at, nil
}

// checkDeployment requires exactly one Deployment, with a valid number of replicas.
func (m Manifest) checkDeployment() error {
	at, err := m.deployment()
	if err != nil {
		return err
	}
	value, found, err := unstructured.NestedFieldNoCopy(m.Objects[at].Object, "spec", "replicas")
	if err != nil {
		return chartError("%s has no spec that is a map", m.source(at))
	}
	if !found || value == nil {
		return nil
	}
	if n, ok := value.(int64); !ok || n < 0 || n > math.MaxInt32 {
		return chartError("%s: spec.replicas is %q, which is not a number of Pods", m.source(at), chart.Shorten(fmt.Sprint(value)))
	}
	return nil
}

// Replicas is the number of replicas in the chart's Deployment; 1 when it has none, and 0 when the Manifest is empty. By Application it is
// the sum of all Deployments and StatefulSets.
func (m Manifest) Replicas() int32 {
	switch {
	case m.nothing():
		return 0
	case m.naming == shipper.NamingByApplication:
		table := lots.Of(m.Objects, lots.Release{})
		return table.Replicas()
	}
	at, err := m.deployment()
	if err != nil {
		return 1
	}
	n, found, err := unstructured.NestedInt64(m.Objects[at].Object, "spec", "replicas")
	if !found || err != nil || n < 0 || n > math.MaxInt32 {
		return 1
	}
	return int32(n)
}

// prepareDeployment prepares a Deployment for Shipper: no replicas yet, and labels in its selector and on its Pods that
// distinguish them. what names it.
func prepareDeployment(o *unstructured.Unstructured, what string, t Target) error {
	if !strings.Contains(o.GetName(), t.ReleaseName) {
		return chartError("Deployment %q has invalid name. "+
			"The name of the Deployment should be templated with {{ .Release.Name }}.", o.GetName())
	}
	if err := unstructured.SetNestedField(o.Object, int64(0), "spec", "replicas"); err != nil {
		return chartError("%s has no spec that is a map", what)
	}
	if err := t.labelDeployment(o); err != nil {
		return chartError("%s: %s", what, err)
	}
	if _, open := podLabels(o)[shipper.TrafficStatusLabel]; open {
		return chartError("%s: its Pods have the label %s, which is Shipper's to give: "+
			"they would have traffic from the start", what, shipper.TrafficStatusLabel)
	}
	return checkSelector(o, what)
}

// checkSelector requires that the Deployment's selector matches its own Pods. The API server checks that too, but only after
// some of the chart is installed.
func checkSelector(o *unstructured.Unstructured, what string) error {
	raw, _, err := unstructured.NestedMap(o.Object, "spec", "selector")
	if err != nil {
		return chartError("%s: spec.selector is not a map", what)
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &selector); err != nil {
		return chartError("%s: spec.selector cannot be read: %s", what, chart.Shorten(err.Error()))
	}
	matches, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return chartError("%s: spec.selector cannot be read: %s", what, chart.Shorten(err.Error()))
	}
	pods := podLabels(o)
	demands, _ := matches.Requirements()
	for _, demand := range demands {
		if !demand.Matches(pods) {
			return chartError("%s: spec.selector asks for %q, but its Pods have no such label; "+
				"give spec.template.metadata.labels what the selector asks for", what, chart.Shorten(demand.String()))
		}
	}
	return nil
}

// podLabels are the labels of a Deployment's Pods.
func podLabels(o *unstructured.Unstructured) labels.Set {
	found, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
	return found
}

// mergeLabels adds own to a map of strings, creating the map and its parents if they are missing.
func mergeLabels(object map[string]any, own map[string]string, fields ...string) error {
	for i := 1; i <= len(fields); i++ {
		// A null value counts as missing.
		if value, found, err := unstructured.NestedFieldNoCopy(object, fields[:i]...); err == nil && found && value == nil {
			unstructured.RemoveNestedField(object, fields[:i]...)
		}
	}
	if err := stringsOnly(object, fields...); err != nil {
		return err
	}
	merged, _, err := unstructured.NestedStringMap(object, fields...)
	if err != nil {
		return err
	}
	if merged == nil {
		merged = make(map[string]string, len(own))
	}
	maps.Copy(merged, own)
	return unstructured.SetNestedStringMap(object, merged, fields...)
}
