// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	rules "shipper.dev/shipper/apis/rules/traffic"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Selectors are those that a Service of an Application may have.
type Selectors struct {
	// App is the name of the Application.
	App string
	// Service is the name of the Service where the Application has several, that is where objects are named by Application. Where they are
	// named by Release it is empty: the one Service selects the Pods of all Releases.
	Service string
}

// Selection is what a selector says: that of Selector and nothing else. The zero value is one that says more or less, for example with a
// key that another writer added.
func (s Selectors) Selection(selector map[string]string) rules.Selection {
	for _, by := range []rules.Selection{{ByLabel: true}, {Release: selector[shipper.ReleaseLabel]}} {
		if maps.Equal(selector, s.Selector(by)) {
			return by
		}
	}
	return rules.Selection{}
}

// Selector says a selection that is not the zero value.
func (s Selectors) Selector(by rules.Selection) map[string]string {
	if by.Release == "" {
		key, value := s.label()
		return map[string]string{shipper.AppLabel: s.App, key: value}
	}
	out := map[string]string{shipper.AppLabel: s.App, shipper.ReleaseLabel: by.Release}
	if s.Service != "" {
		out[shipper.BackendLabel(s.Service)] = "true"
	}
	return out
}

// label lets a Pod into the traffic of the Service.
func (s Selectors) label() (key, value string) {
	if s.Service == "" {
		return shipper.TrafficStatusLabel, shipper.TrafficEnabled
	}
	return shipper.ServesLabel(s.Service), "true"
}

// labels reports whether a Pod has the label that lets it in.
func (s Selectors) labels(pod *corev1.Pod) bool {
	key, value := s.label()
	return pod.Labels[key] == value
}

// backs reports whether a Pod, or those of a Deployment, are made for the Service, by their labels.
func (s Selectors) backs(labels map[string]string) bool {
	return s.Service == "" || labels[shipper.BackendLabel(s.Service)] == "true"
}
