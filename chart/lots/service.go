// SPDX-License-Identifier: Apache-2.0

package lots

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
)

// Use is what Shipper does with a Service.
type Use string

const (
	// Production Services move from Release to Release, all together.
	Production Use = "production"
	// Preview is the Service with the label `shipper-lb: preview`: it selects the contender before that has traffic.
	Preview Use = "preview"
	// AsItIs Services keep the selector that the chart gave them.
	AsItIs Use = "as it is"
)

// Service is what becomes of a Service of the chart.
type Service struct {
	// Name is the name that the chart gave it, which it keeps.
	Name string
	// Use is what Shipper does with it.
	Use Use
	// Reason says why Shipper leaves it as it is.
	Reason string
	// SideBySide names the Deployments side by side whose Pods the chart's selector matches, by their given names.
	SideBySide []string
	// InPlace names the workloads in place whose Pods it matches, by kind and given name.
	InPlace []string
}

// sortServices finds what each Service moves.
func (t *Table) sortServices() {
	preview := ""
	for i := range t.Entries {
		e := &t.Entries[i]
		if groupKind(e.Object) != service {
			continue
		}
		s := t.serviceOf(e)
		switch s.Use {
		case Preview:
			if preview != "" {
				t.refuse("Services %s and %s have the label %s: %s; give it to the one Service that previews select, and no other",
					preview, e.Given, shipper.LBLabel, shipper.LBForPreview)
			}
			preview = e.Given
		case Production:
			for _, name := range s.SideBySide {
				by := t.workload(deployment.Kind, name)
				by.Serves = sortedUnique(append(by.Serves, s.Name))
			}
		case AsItIs:
			if len(s.SideBySide) > 0 && len(s.InPlace) > 0 {
				t.Warnings = append(t.Warnings, fmt.Sprintf("%s selects Pods of Deployment %s, which run side by side, and of %s, in place: "+
					"it keeps the selector of the chart, so that all its ready Pods serve, and capacity decides the shares; "+
					"give each a Service of its own to shift traffic by weight", e, strings.Join(s.SideBySide, ", "), strings.Join(s.InPlace, ", ")))
			}
		}
		t.Services = append(t.Services, s)
	}
}

// serviceOf finds what a Service selects.
func (t *Table) serviceOf(e *Entry) Service {
	s := Service{Name: e.Given, Use: AsItIs}
	if text(e.Object.Object, "spec", "type") == string(corev1.ServiceTypeExternalName) {
		s.Reason = "ExternalName"
		return s
	}
	selector, err := selectorOf(section(e.Object.Object, "spec", "selector"))
	switch {
	case err != nil:
		t.refuse("%s: spec.selector.%s: quote it in the chart", e, err)
		s.Reason = "no usable selector"
		return s
	case len(selector) == 0:
		s.Reason = "no selector"
		return s
	}
	for i := range t.Entries {
		by := &t.Entries[i]
		if !isWorkload(by.Object) || !selects(selector, podLabels(by)) {
			continue
		}
		if by.Lot == SideBySide {
			s.SideBySide = append(s.SideBySide, by.Given)
		} else {
			s.InPlace = append(s.InPlace, by.String())
		}
	}
	headless := text(e.Object.Object, "spec", "clusterIP") == corev1.ClusterIPNone
	switch {
	case e.Object.GetLabels()[shipper.LBLabel] == shipper.LBForPreview:
		s.Use = Preview
	case len(s.SideBySide) == 0 && len(s.InPlace) == 0:
		s.Reason = "selects no workload of the chart"
	case len(s.SideBySide) == 0 && headless:
		s.Reason = "headless, for " + strings.Join(s.InPlace, ", ")
	case len(s.SideBySide) == 0:
		s.Reason = "selects " + strings.Join(s.InPlace, ", ") + " in place"
	case len(s.InPlace) > 0: // its Pods in place have no labels of Shipper, which the selector of a production Service needs
		s.Reason = "selects Pods side by side and " + strings.Join(s.InPlace, ", ") + " in place: capacity decides the shares"
	case headless && nested(e.Object.Object, "spec", "publishNotReadyAddresses") == true:
		s.Reason = "headless, finds Pods before they are ready"
	default:
		s.Use = Production
	}
	return s
}

// selectorOf reads a selector. The keys of Shipper are left out: a chart made for it may have them, and they choose among Pods of any.
func selectorOf(given map[string]any) (labels.Set, error) {
	out := labels.Set{}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		value, ok := given[key].(string)
		if !ok {
			return nil, fmt.Errorf("%s is %v, which is not a string", chart.Shorten(key), chart.Shorten(fmt.Sprint(given[key])))
		}
		out[key] = value
	}
	return out, nil
}

// selects reports whether a selector matches labels, apart from those that Shipper gives.
func selects(selector, pods labels.Set) bool {
	for key, value := range selector {
		if given, found := pods[key]; (!found || given != value) && !shipper.ReservedLabel(key) {
			return false
		}
	}
	return true
}

// podLabels are the labels of a workload's Pods that are strings.
func podLabels(e *Entry) labels.Set {
	out := labels.Set{}
	for key, value := range section(podTemplate(e.Object), "metadata", "labels") {
		if s, ok := value.(string); ok {
			out[key] = s
		}
	}
	return out
}
