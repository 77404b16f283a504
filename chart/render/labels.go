// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"shipper.dev/shipper/apis/rules/tracking"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TargetOf is the Target of a Release, or of its InstallationTarget, in a cluster of that version and with these APIs. Labels that a tool
// has put on it since, as on a restored one, are no part of it.
func TargetOf(of *metav1.ObjectMeta, naming shipper.ChartNaming, kubeVersion string, apis []string) Target {
	t := Target{
		Naming: naming, ReleaseName: of.Name, Namespace: of.Namespace, App: of.Labels[shipper.AppLabel],
		KubeVersion: kubeVersion, APIVersions: apis,
		HelmWorkaround: of.Labels[shipper.HelmWorkaroundLabel], Labels: of.Labels,
		ChartLabels: of.Annotations[shipper.ReleaseLabelPrecedenceAnnotation] == shipper.LabelsOfChart,
	}
	if t.ChartLabels {
		t.Labels = tracking.Without(t.Labels)
	}
	return t
}

// marks are the labels by which Shipper knows the objects of a Release.
func (t Target) marks() map[string]string {
	out := map[string]string{shipper.AppLabel: t.App, shipper.ReleaseLabel: t.ReleaseName, shipper.OwnedByLabel: t.ReleaseName}
	if sum := t.Labels[shipper.ReleaseHashLabel]; sum != "" {
		out[shipper.ReleaseHashLabel] = sum
	}
	return out
}

// overriding are the labels that every object of a Release without ChartLabels gets, over those of the chart, in its Deployment's selector
// too: running Deployments have them there, and a selector is immutable.
func (t Target) overriding() map[string]string {
	own := make(map[string]string, len(t.Labels)+3)
	maps.Copy(own, t.Labels)
	// These two mark single objects; on all of them they would give all Pods traffic at once.
	delete(own, shipper.TrafficStatusLabel)
	delete(own, shipper.LBLabel)
	maps.Copy(own, t.marks())
	return own
}

// labelObject adds labels to an object itself.
func (t Target) labelObject(o *unstructured.Unstructured) error {
	if t.Naming == shipper.NamingByApplication || t.ChartLabels {
		return addLabels(o, t, nil, nil, "metadata", "labels")
	}
	return mergeLabels(o.Object, t.overriding(), "metadata", "labels")
}

// labelDeployment adds labels to the selector and the Pods of a Deployment by Release. The selector asks for those of the Application that
// its Pods have.
func (t Target) labelDeployment(o *unstructured.Unstructured) error {
	selector, pods := []string{"spec", "selector", "matchLabels"}, []string{"spec", "template", "metadata", "labels"}
	if !t.ChartLabels {
		if err := mergeLabels(o.Object, t.overriding(), selector...); err != nil {
			return err
		}
		return mergeLabels(o.Object, t.overriding(), pods...)
	}
	if err := addLabels(o, t, nil, selectorOf(o), pods...); err != nil {
		return err
	}
	if err := mergeLabels(o.Object, nil, selector...); err != nil {
		return err
	}
	asked, _, _ := unstructured.NestedStringMap(o.Object, selector...)
	added, has := t.marks(), podLabels(o)
	for key, value := range t.Labels {
		if _, given := asked[key]; !given && has[key] == value && !shipper.ReservedLabel(key) {
			added[key] = value
		}
	}
	return mergeLabels(o.Object, added, selector...)
}

// addLabels adds to a map of labels those of Shipper and more, and those of the Application that the chart does not set there. A selector
// of the chart that does not match one of the Application keeps it away.
func addLabels(
	o *unstructured.Unstructured, t Target, more map[string]string, selector labels.Requirements, fields ...string,
) error {
	if err := mergeLabels(o.Object, nil, fields...); err != nil {
		return err
	}
	added := maps.Clone(t.Labels)
	given, _, _ := unstructured.NestedStringMap(o.Object, fields...)
	maps.DeleteFunc(added, func(key, value string) bool {
		_, has := given[key]
		return has || shipper.ReservedLabel(key) || excludes(selector, key, value)
	})
	if added == nil {
		added = map[string]string{}
	}
	maps.Copy(added, t.marks())
	maps.Copy(added, more)
	return mergeLabels(o.Object, added, fields...)
}

// selectorOf is what the selector of a workload requires; nothing if it has none, or it cannot be read.
func selectorOf(o *unstructured.Unstructured) labels.Requirements {
	raw, _, _ := unstructured.NestedMap(o.Object, "spec", "selector")
	var selector metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &selector) != nil {
		return nil
	}
	matches, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return nil
	}
	out, _ := matches.Requirements()
	return out
}

// excludes reports whether a selector does not match Pods with a label.
func excludes(selector labels.Requirements, key, value string) bool {
	for _, r := range selector {
		if r.Key() == key && !r.Matches(labels.Set{key: value}) {
			return true
		}
	}
	return false
}
