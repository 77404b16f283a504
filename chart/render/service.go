// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
)

// serviceUse is the value of a Service's label shipper-lb, empty when it has none, and whether the object is a Service.
func serviceUse(o *unstructured.Unstructured) (use string, is bool) {
	return o.GetLabels()[shipper.LBLabel], o.GetAPIVersion() == "v1" && o.GetKind() == "Service"
}

// trafficService finds the Service for traffic: the one with the label for that, else the only one.
func (m Manifest) trafficService() (int, error) {
	var all, labelled []int
	for i := range m.Objects {
		use, is := serviceUse(&m.Objects[i])
		if !is || use == shipper.LBForPreview {
			continue
		}
		all = append(all, i)
		if use == shipper.LBForProduction {
			labelled = append(labelled, i)
		}
	}
	if len(labelled) == 0 && len(all) == 1 {
		labelled = all
	}
	if len(labelled) != 1 {
		return -1, chartError("one and only one v1.Service object with label %q is required, but %d found instead; "+
			"give the Service that takes the production traffic the label %s: %s, and no other",
			shipper.LBLabel, len(labelled), shipper.LBLabel, shipper.LBForProduction)
	}
	return labelled[0], nil
}

// prepareService makes a Service select the Pods with traffic of every Release, and one for previews no Pods. pods are the labels of the
// Deployment's Pods; what names the Service.
func prepareService(o *unstructured.Unstructured, use, what string, t Target, pods labels.Set) error {
	if kind, _, _ := unstructured.NestedString(o.Object, "spec", "type"); kind == "ExternalName" {
		return chartError("%s: a Service of type ExternalName has no Pods to shift traffic between", what)
	}
	if strings.Contains(o.GetName(), t.ReleaseName) {
		return chartError("%s: the name of the Service carries that of the release, so that every release would have "+
			"its own and no traffic could be shifted from one to the other; "+
			"give it a name that stays the same from release to release, such as {{ .Chart.Name }} in its template "+
			"(fullnameOverride names the Deployment too, which needs the release's name)", what)
	}
	asked, err := stableSelector(o, what, t)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(asked)) {
		if key != shipper.AppLabel && key != shipper.TrafficStatusLabel && pods[key] != asked[key] {
			return chartError("%s: spec.selector asks for %q, but the Pods of the Deployment have no such label",
				what, chart.Shorten(key+"="+asked[key]))
		}
	}
	// The rest of the selector is dropped: Pods of another Release, which may serve now, need not have the labels of this one's
	// Pods.
	selector := map[string]string{shipper.AppLabel: t.App, shipper.TrafficStatusLabel: shipper.TrafficEnabled}
	if use == shipper.LBForPreview {
		selector = map[string]string{shipper.AppLabel: t.App, shipper.ReleaseLabel: shipper.NoRelease}
	}
	if err := unstructured.SetNestedStringMap(o.Object, selector, "spec", "selector"); err != nil {
		return chartError("%s has no spec that is a map", what)
	}
	return mergeLabels(o.Object, map[string]string{shipper.LBLabel: use}, "metadata", "labels")
}

// previewService finds the Service with the label for previews; -1 when the chart has none.
func (m Manifest) previewService() (int, error) {
	found := -1
	for i := range m.Objects {
		if use, is := serviceUse(&m.Objects[i]); !is || use != shipper.LBForPreview {
			continue
		}
		if found >= 0 {
			return -1, chartError("%s and %s have the label %s: %s; give it to the one Service that previews select, and no other",
				m.source(found), m.source(i), shipper.LBLabel, shipper.LBForPreview)
		}
		found = i
	}
	return found, nil
}

// stableSelector is the Service's selector without its parts that bind it to one release. They are removed if the Application's
// label permits that, and refused otherwise.
func stableSelector(o *unstructured.Unstructured, what string, t Target) (map[string]string, error) {
	if err := mergeLabels(o.Object, nil, "spec", "selector"); err != nil {
		return nil, chartError("%s: %s", what, err)
	}
	found, _, err := unstructured.NestedStringMap(o.Object, "spec", "selector")
	if err != nil {
		return nil, chartError("%s: %s", what, err)
	}
	selector := maps.Clone(found)
	for _, key := range slices.Sorted(maps.Keys(found)) {
		bound := found[key] == t.ReleaseName
		if key != shipper.HelmReleaseSelector && !bound {
			continue
		}
		switch t.HelmWorkaround {
		case "true":
			if bound {
				delete(selector, key)
			}
		case "", "false":
			return nil, chartError("%s: its selector has %s: %s, which binds it to one release. "+
				"This will break shipper traffic shifting logic. "+
				"Take it out of the selector or, when the chart cannot be changed, label the Application "+
				"%s: \"true\" to have Shipper take it out", what, key, chart.Shorten(found[key]), shipper.HelmWorkaroundLabel)
		default:
			return nil, chartError("Unexpected value for label %q: %q; it may be \"true\" or \"false\"",
				shipper.HelmWorkaroundLabel, chart.Shorten(t.HelmWorkaround))
		}
	}
	return selector, nil
}
