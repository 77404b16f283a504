// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"shipper.dev/shipper/reconciler/member/drift"
)

// allocated are the fields of a Service's spec that the API server allocates, or that only say what it allocates. It does not give the
// same again, so the values of a rehearsal prove nothing.
var allocated = []string{
	"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort", "allocateLoadBalancerNodePorts",
}

// ofProviders are the fields of a Service's spec that some providers of load balancers write.
var ofProviders = []string{"loadBalancerIP", "loadBalancerClass"}

// steering are the labels and annotations of a Service that decide where its requests go: by the labels kube-proxy ignores the
// Service, and by the annotations it prefers endpoints of its own zone.
var steering = map[string][]string{
	"labels":      {"service.kubernetes.io/service-proxy-name", corev1.IsHeadlessService},
	"annotations": {"service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints"},
}

// withoutRedirections is the production Service to be written over the live one: every field that decides where requests go is as the
// chart has it, and null where the chart leaves it to the API server. It has no null where the API server allocates.
func withoutRedirections(object, live *unstructured.Unstructured) *unstructured.Unstructured {
	out := object.DeepCopy()
	spec, mine := section(live, "spec"), section(out, "spec")
	for field := range spec {
		if _, set := mine[field]; set || slices.Contains(allocated, field) {
			continue
		}
		if slices.Contains(ofProviders, field) && mine["type"] == string(corev1.ServiceTypeLoadBalancer) {
			continue
		}
		mine[field] = nil
	}
	for name, keys := range steering {
		theirs, mine := section(live, "metadata", name), section(out, "metadata", name)
		for _, key := range keys {
			_, there := theirs[key]
			if _, set := mine[key]; there && !set {
				mine[key] = nil
			}
		}
	}
	return out
}

// section is a map within an object, not a copy; empty and apart from the object when there is none.
func section(object *unstructured.Unstructured, path ...string) map[string]any {
	found, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if m, is := found.(map[string]any); is && err == nil {
		return m
	}
	return map[string]any{}
}

// released are the differences that count: of the production Service, all but those of fields that the chart leaves to the API server,
// which allocates them.
func released(list []drift.Difference, object *unstructured.Unstructured) []drift.Difference {
	if !isTrafficService(object) {
		return list
	}
	spec := section(object, "spec")
	return slices.DeleteFunc(list, func(d drift.Difference) bool {
		if len(d.Path) < 2 || d.Path[0] != "f:spec" {
			return false
		}
		field := strings.TrimPrefix(d.Path[1], "f:")
		if _, set := spec[field]; !set && slices.Contains(allocated, field) {
			return true
		}
		return field == "ports" && d.Path[len(d.Path)-1] == "f:nodePort" && !setsNodePorts(spec)
	})
}

// setsNodePorts reports whether a chart chooses ports of nodes itself.
func setsNodePorts(spec map[string]any) bool {
	ports, _ := spec["ports"].([]any)
	return slices.ContainsFunc(ports, func(port any) bool {
		m, _ := port.(map[string]any)
		_, set := m["nodePort"]
		return set
	})
}

// providers are the differences of the production Service that are reported and never corrected: fields of load balancers, which a
// provider may have written, and an address that was given up, which Kubernetes does not give back.
func providers(object, live *unstructured.Unstructured) []drift.Difference {
	if !isTrafficService(object) {
		return nil
	}
	var out []drift.Difference
	spec, mine := section(live, "spec"), section(object, "spec")
	at := drift.Place{}.Field("spec")
	if mine["clusterIP"] == nil && spec["clusterIP"] == corev1.ClusterIPNone {
		out = append(out, drift.Difference{Place: at.Field("clusterIP"), Have: spec["clusterIP"]})
	}
	for _, field := range ofProviders {
		if mine["type"] == string(corev1.ServiceTypeLoadBalancer) && mine[field] == nil && spec[field] != nil {
			out = append(out, drift.Difference{Place: at.Field(field), Have: spec[field]})
		}
	}
	return out
}
