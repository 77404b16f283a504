// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
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

// reportHash reports that a Pod template names the label of Argo's controller, which Pods do not have here.
func reportHash(template map[string]any, report *report) {
	if text, err := json.Marshal(template); err == nil && bytes.Contains(text, []byte(hashLabel)) {
		report.add("spec.template", "names the label %s, which Argo's controller sets, and which Pods do not have here: write %s, whose value "+
			"is the name of the Release", hashLabel, shipper.ReleaseLabel)
	}
}

// services are the Services of a chart.
type services struct {
	// production are those that move from Release to Release.
	production []map[string]any
	// preview is that of the contender; nil if there is none.
	preview map[string]any
	// used are the indexes of the documents that they were made from.
	used []int
}

// podsOf are the Pods that Services select: those of a Pod template, which belongs to a document.
type podsOf struct {
	owner              document
	template, selector map[string]any
}

// serviceNames are the Services that a Rollout names, with the fields that do. They are empty where it names none.
type serviceNames struct {
	production, productionField, preview, previewField string
}

func (r *rollout) serviceNames() serviceNames {
	if b := r.Spec.Strategy.BlueGreen; b != nil {
		return serviceNames{
			b.ActiveService, "spec.strategy.blueGreen.activeService", b.PreviewService, "spec.strategy.blueGreen.previewService",
		}
	}
	c := r.Spec.Strategy.Canary
	return serviceNames{c.StableService, "spec.strategy.canary.stableService", c.CanaryService, "spec.strategy.canary.canaryService"}
}

// servicesOf finds the Services of a Rollout in the input, and makes those that it names and that are not there.
func servicesOf(r *rollout, pods podsOf, all []document, report *report) (services, error) {
	by := r.serviceNames()
	if by.production == by.preview && by.preview != "" {
		return services{}, pods.owner.failed(by.previewField, "is the same Service as %s", by.productionField)
	}
	var out services
	if by.production != "" {
		service, err := out.take(by.production, by.productionField, "", pods, all, report)
		if err != nil {
			return services{}, err
		}
		out.production = append(out.production, service)
	}
	if by.preview != "" {
		service, err := out.take(by.preview, by.previewField, shipper.LBForPreview, pods, all, report)
		if err != nil {
			return services{}, err
		}
		out.preview = service
	}
	canary := r.Spec.Strategy.Canary
	others := out.takeOthers(pods, all, report)
	if by.production != "" && (canary == nil || canary.TrafficRouting != nil) {
		for _, d := range others {
			report.addOf(d, "spec.selector", "selects the Pods of both versions with Argo Rollouts, and here only those that have traffic")
		}
	}
	switch {
	case canary == nil || canary.TrafficRouting != nil:
	case by.production != "":
		report.add(by.productionField, "selects no Pods of the canary with Argo Rollouts before the last step; here %s selects the Pods of both "+
			"Releases, in the shares of each step", by.production)
	case len(out.production) == 0 && len(servicePorts(pods.template)) > 0:
		report.add("spec.strategy.canary", "no Service in the input selects the Pods, so that capacity alone decides: put the Services, if "+
			"there are any, beside the Rollout, and convert it again")
	}
	return out, nil
}

// takeOthers adds the Services in the input that select the Pods and that are not used yet: that with the name of the Pods' owner comes
// first.
func (s *services) takeOthers(pods podsOf, all []document, report *report) (found []document) {
	ofOthers := servicesOfOthers(pods.owner, all)
	for i, other := range all {
		if !other.is("v1", "Service") || !other.besides(pods.owner) || slices.Contains(s.used, i) || ofOthers[other.GetName()] {
			continue
		}
		selector, _, err := unstructured.NestedStringMap(other.Object, "spec", "selector")
		again := slices.ContainsFunc(s.used, func(used int) bool { return all[used].GetName() == other.GetName() })
		if err != nil || again || len(selector) == 0 || unselected(selector, podLabels(pods.template)) != "" {
			continue
		}
		s.used, found = append(s.used, i), append(found, other)
		service := cleaned(other, "", report)
		if other.GetName() == pods.owner.GetName() {
			s.production = slices.Insert(s.production, 0, service)
		} else {
			s.production = append(s.production, service)
		}
	}
	return found
}

// servicesOfOthers are the names of Services that belong to other Rollouts of the input: those that they name, and their own names.
func servicesOfOthers(owner document, all []document) map[string]bool {
	names := map[string]bool{}
	for _, other := range all {
		if !other.is(argo, "Rollout") || other.GetName() == owner.GetName() {
			continue
		}
		names[other.GetName()] = true
		for _, field := range []string{"blueGreen/activeService", "blueGreen/previewService", "canary/stableService", "canary/canaryService"} {
			name, _, _ := unstructured.NestedString(other.Object, strings.Split("spec/strategy/"+field, "/")...)
			names[name] = true
		}
	}
	delete(names, owner.GetName())
	return names
}

// unselected is the first key and value that a selector asks for and labels do not have; empty if they have all.
func unselected(selector, labels map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		if key != hashLabel && labels[key] != selector[key] {
			return key + "=" + selector[key]
		}
	}
	return ""
}

func podLabels(template map[string]any) map[string]string {
	labels, _, _ := unstructured.NestedStringMap(template, "metadata", "labels")
	return labels
}

// take returns the Service of a name with the label for its use.
func (s *services) take(name, field, use string, pods podsOf, all []document, report *report) (map[string]any, error) {
	for i, other := range all {
		if !other.is("v1", "Service") || other.GetName() != name || !other.besides(pods.owner) {
			continue
		}
		s.used = append(s.used, i)
		out := cleaned(other, use, report)
		selector, _, err := unstructured.NestedStringMap(out, "spec", "selector")
		if err != nil {
			return nil, other.failed("spec.selector", "is not a map of texts")
		}
		if wrong := unselected(selector, podLabels(pods.template)); wrong != "" {
			return nil, other.failed("spec.selector", "asks for %q, but the Pods of %s have no such label", wrong, pods.owner.title())
		}
		if len(selector) == 0 { // Argo's controller adds the hash of one ReplicaSet
			err = unstructured.SetNestedStringMap(out, pods.labels(), "spec", "selector")
		}
		return out, err
	}
	report.add(field, "the Service %s is not in the input: the chart has one made from the ports of the containers; compare it with the one "+
		"that runs", name)
	return made(name, use, pods), nil
}

// labels are those by which a Service selects the Pods.
func (p podsOf) labels() map[string]string {
	if labels, _, err := unstructured.NestedStringMap(p.selector, "matchLabels"); err == nil && len(labels) > 0 {
		return labels
	}
	return podLabels(p.template)
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

// cleaned is a Service without what clusters write into it. A headless one stays headless. An address that its author chose is reported.
func cleaned(d document, use string, report *report) map[string]any {
	if address := fixedAddress(d); address != "" {
		report.addOf(d, "spec.clusterIP", "%s is left out, since each application cluster has addresses of its own: have clients use the "+
			"name of the Service, or write the address into the chart if it is free in every cluster", address)
	}
	from := d.DeepCopy().Object
	spec, _, _ := unstructured.NestedMap(from, "spec")
	if spec["clusterIP"] != corev1.ClusterIPNone {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	unstructured.RemoveNestedField(spec, "selector", hashLabel)
	return map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": metadataOf(d.GetName(), marked(d.GetLabels(), use), d.GetAnnotations()), "spec": spec,
	}
}

// marked are labels with that for a use of a Service, if it has one.
func marked(labels map[string]string, use string) map[string]string {
	if use == "" {
		return labels
	}
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	out[shipper.LBLabel] = use
	return out
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
func made(name, use string, pods podsOf) map[string]any {
	ports := servicePorts(pods.template)
	if len(ports) == 0 {
		ports = []any{map[string]any{"name": "http", "port": int64(80), "targetPort": int64(80)}}
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": metadataOf(name, marked(nil, use), nil),
		"spec": map[string]any{"ports": ports, "selector": anyMap(pods.labels())},
	}
}

// servicePorts are ports for those of the containers.
func servicePorts(template map[string]any) (ports []any) {
	containers, _, _ := unstructured.NestedSlice(template, "spec", "containers")
	for _, container := range containers {
		fields, _ := container.(map[string]any)
		all, _, _ := unstructured.NestedSlice(fields, "ports")
		for _, port := range all {
			if made := servicePort(port); made != nil {
				ports = append(ports, made)
			}
		}
	}
	return ports
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
