// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// hashLabel is the label by which Argo's controller makes a Service select one ReplicaSet.
const hashLabel = "rollouts-pod-template-hash"

// services are the Services of a chart.
type services struct {
	production, preview map[string]any
	// used are the indexes of the documents that they were made from.
	used []int
}

// servicesOf finds the Services of a Rollout in the input, and makes those that are not there.
func servicesOf(d document, r *rollout, template map[string]any, all []document, report *report) (services, error) {
	field, production := "spec.strategy.canary.stableService", ""
	previewField, preview := "spec.strategy.canary.canaryService", ""
	if b := r.Spec.Strategy.BlueGreen; b != nil {
		field, production = "spec.strategy.blueGreen.activeService", b.ActiveService
		previewField, preview = "spec.strategy.blueGreen.previewService", b.PreviewService
	} else {
		production, preview = r.Spec.Strategy.Canary.StableService, r.Spec.Strategy.Canary.CanaryService
	}
	if production == preview && preview != "" {
		return services{}, d.failed(previewField, "is the same Service as %s", field)
	}
	var out services
	if production == "" {
		production = selecting(d, template, all, preview)
	}
	out.production = out.take(d, production, field, shipper.LBForProduction, template, all, report)
	if preview != "" {
		out.preview = out.take(d, preview, previewField, shipper.LBForPreview, template, all, report)
	}
	return out, nil
}

// selecting is the name of the Service in the input that selects the Pods of a Rollout and is not its preview: that with the name of the
// Rollout, or else the first one. Without any, it is the name of the Rollout.
func selecting(d document, template map[string]any, all []document, preview string) string {
	var found []string
	for _, other := range all {
		if !other.is("v1", "Service") || !other.besides(d) || other.GetName() == preview {
			continue
		}
		selector, _, err := unstructured.NestedStringMap(other.Object, "spec", "selector")
		if err == nil && len(selector) > 0 && selects(selector, podLabels(template)) {
			found = append(found, other.GetName())
		}
	}
	if len(found) == 0 || slices.Contains(found, d.GetName()) {
		return d.GetName()
	}
	return found[0]
}

// selects reports whether labels have all that a selector asks for.
func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if key != hashLabel && labels[key] != value {
			return false
		}
	}
	return true
}

func podLabels(template map[string]any) map[string]string {
	labels, _, _ := unstructured.NestedStringMap(template, "metadata", "labels")
	return labels
}

// take returns the Service of a name with the label for its use.
func (s *services) take(
	d document, name, field, use string, template map[string]any, all []document, report *report,
) map[string]any {
	for i, other := range all {
		if other.is("v1", "Service") && other.GetName() == name && other.besides(d) {
			s.used = append(s.used, i)
			if address := fixedAddress(other); address != "" {
				report.addOf(other, "spec.clusterIP", "%s is left out, since each application cluster has addresses of its own: have clients use the "+
					"name of the Service, or write the address into the chart if it is free in every cluster", address)
			}
			return cleaned(other, use)
		}
	}
	report.add(field, "the Service %s is not in the input: the chart has one made from the ports of the containers; compare it with the one "+
		"that runs", name)
	return made(name, use, template)
}

// fixedAddress is the clusterIP that the author of a Service chose; empty if there is none, if the Service is headless, or if the API
// server assigned it: a Service read from a cluster has a uid, and its author's fields are in the annotation of `kubectl apply`.
func fixedAddress(d document) string {
	address, _, _ := unstructured.NestedString(d.Object, "spec", "clusterIP")
	switch {
	case address == corev1.ClusterIPNone:
		return ""
	case d.GetUID() == "":
		return address
	}
	var applied struct {
		Spec struct {
			ClusterIP string `json:"clusterIP"`
		} `json:"spec"`
	}
	if json.Unmarshal([]byte(d.GetAnnotations()[corev1.LastAppliedConfigAnnotation]), &applied) != nil || applied.Spec.ClusterIP != address {
		return ""
	}
	return address
}

// cleaned is a Service without what clusters write into it. A headless one stays headless.
func cleaned(d document, use string) map[string]any {
	from := d.DeepCopy().Object
	spec, _, _ := unstructured.NestedMap(from, "spec")
	if spec["clusterIP"] != corev1.ClusterIPNone {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	unstructured.RemoveNestedField(spec, "selector", hashLabel)
	labels := d.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[shipper.LBLabel] = use
	return map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": metadataOf(d.GetName(), labels, d.GetAnnotations()), "spec": spec,
	}
}

// metadataOf is the metadata of an object in a chart. The namespace is that of the Application.
func metadataOf(name string, labels, annotations map[string]string) map[string]any {
	out := map[string]any{}
	if name != "" {
		out["name"] = name
	}
	if len(labels) > 0 {
		out["labels"] = anyMap(labels)
	}
	kept := maps.Clone(annotations)
	maps.DeleteFunc(kept, func(key, _ string) bool { return argoAnnotation(key) || key == corev1.LastAppliedConfigAnnotation })
	if len(kept) > 0 {
		out["annotations"] = anyMap(kept)
	}
	return out
}

func anyMap(from map[string]string) map[string]any {
	out := make(map[string]any, len(from))
	for key, value := range from {
		out[key] = value
	}
	return out
}

// made is a Service for the ports of a Pod template; port 80 where it has none.
func made(name, use string, template map[string]any) map[string]any {
	containers, _, _ := unstructured.NestedSlice(template, "spec", "containers")
	var ports []any
	for _, container := range containers {
		fields, _ := container.(map[string]any)
		all, _, _ := unstructured.NestedSlice(fields, "ports")
		for _, port := range all {
			if made := servicePort(port); made != nil {
				ports = append(ports, made)
			}
		}
	}
	if len(ports) == 0 {
		ports = []any{map[string]any{"name": "http", "port": int64(80), "targetPort": int64(80)}}
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": metadataOf(name, map[string]string{shipper.LBLabel: use}, nil),
		// Shipper writes the selector.
		"spec": map[string]any{"ports": ports},
	}
}

// servicePort makes a port of a Service from one of a container; nil if it has no number.
func servicePort(container any) map[string]any {
	fields, _ := container.(map[string]any)
	number, ok := fields["containerPort"].(int64)
	if !ok {
		return nil
	}
	port := map[string]any{"name": fmt.Sprintf("port-%d", number), "port": number, "targetPort": number}
	if protocol, _ := fields["protocol"].(string); protocol != "" && protocol != string(corev1.ProtocolTCP) {
		port["protocol"] = protocol
		port["name"] = fmt.Sprintf("port-%d-%s", number, strings.ToLower(protocol))
	}
	if name, _ := fields["name"].(string); name != "" {
		port["name"] = name
	}
	return port
}
