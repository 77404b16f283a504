// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// services are those that Flagger makes, except that of the primary: NAME for clients, and NAME-canary for the new Pods.
func (c *canaryConversion) services(pods podsOf) services {
	apex := c.serviceName()
	c.made(apex + "-primary")
	if primary := c.Spec.TargetRef.Name + "-primary"; primary != apex+"-primary" {
		c.made(primary)
	}
	return services{
		production: []map[string]any{c.service(apex, "", c.Spec.Service.Apex, pods)},
		preview:    c.service(apex+"-canary", shipper.LBForPreview, c.Spec.Service.Canary, pods),
	}
}

// made takes objects of a name that Flagger made out of the input.
func (c *canaryConversion) made(name string) {
	for i, d := range c.all {
		if d.GetName() != name || !d.besides(c.document) {
			continue
		}
		switch d.GetKind() {
		case "Deployment", "HorizontalPodAutoscaler", "Service":
			c.used = append(c.used, i)
			c.report.addOf(d, "metadata.name", "is left out: Flagger made it of Canary %s", c.GetName())
		}
	}
}

// service is a Service of Flagger. One of the input keeps its type and metadata, and gets Flagger's ports, as in Flagger.
func (c *canaryConversion) service(name, use string, meta flaggerMetadata, pods podsOf) map[string]any {
	out := made(name, use, pods)
	ports := c.ports(pods.template)
	for i, d := range c.all {
		if d.is("v1", "Service") && d.GetName() == name && d.besides(c.document) {
			c.used = append(c.used, i)
			out = cleaned(d, use, c.report)
			_ = unstructured.SetNestedStringMap(out, pods.labels(), "spec", "selector") // Flagger's selects its own Pods
			keepNodePorts(ports, d)
		}
	}
	if c.Spec.Service.Port <= 0 {
		if use != shipper.LBForPreview {
			c.report.add("spec.service.port", "is missing: compare the ports of the Services in the chart with those that run")
		}
	} else {
		_ = unstructured.SetNestedSlice(out, ports, "spec", "ports")
	}
	addTo(out, "labels", map[string]string{c.appLabel(): name})
	addTo(out, "labels", meta.Labels)
	addTo(out, "annotations", meta.Annotations)
	return out
}

// appLabel is the label by which Flagger selects Pods, and which its Services have, too.
func (c *canaryConversion) appLabel() string {
	labels, _, _ := unstructured.NestedMap(c.all[c.target].Object, "spec", "selector", "matchLabels")
	for _, key := range []string{"app", "name", "app.kubernetes.io/name"} {
		if labels[key] != nil {
			return key
		}
	}
	return shipper.LBLabel // which addTo leaves alone
}

// addTo adds labels or annotations to an object. Those that Shipper sets stay.
func addTo(object map[string]any, field string, more map[string]string) {
	for key, value := range more {
		if key != shipper.LBLabel {
			_ = unstructured.SetNestedField(object, value, "metadata", field, key)
		}
	}
}

// keepNodePorts copies the node ports of a Service to ports with the same names.
func keepNodePorts(ports []any, from document) {
	existing, _, _ := unstructured.NestedSlice(from.Object, "spec", "ports")
	for _, port := range existing {
		fields, _ := port.(map[string]any)
		for _, made := range ports {
			if made := made.(map[string]any); fields["nodePort"] != nil && made["name"] == fields["name"] {
				made["nodePort"] = fields["nodePort"]
			}
		}
	}
}

// ports are those of the Services: the one of the Canary and, with portDiscovery, those of the containers.
func (c *canaryConversion) ports(template map[string]any) []any {
	from := c.Spec.Service
	var target any = int64(from.Port)
	switch {
	case from.TargetPort.Type == intstr.String && from.TargetPort.StrVal != "":
		target = from.TargetPort.StrVal
	case from.TargetPort.Type == intstr.Int && from.TargetPort.IntVal > 0:
		target = int64(from.TargetPort.IntVal)
	}
	first := map[string]any{"name": "http", "port": int64(from.Port), "protocol": "TCP", "targetPort": target}
	if from.PortName != "" {
		first["name"] = from.PortName
	}
	if from.AppProtocol != "" {
		first["appProtocol"] = from.AppProtocol
	}
	out := []any{first}
	if !from.PortDiscovery {
		return out
	}
	containers, _, _ := unstructured.NestedSlice(template, "spec", "containers")
	for _, container := range containers {
		fields, _ := container.(map[string]any)
		all, _, _ := unstructured.NestedSlice(fields, "ports")
		for _, port := range all {
			port, _ := port.(map[string]any)
			number, ok := port["containerPort"].(int64)
			if !ok || number == target || port["name"] == target {
				continue
			}
			name, _ := port["name"].(string)
			if name == "" {
				name = fmt.Sprintf("tcp-%v-%d", fields["name"], number)
			}
			out = append(out, map[string]any{"name": name, "port": number, "protocol": "TCP", "targetPort": number})
		}
	}
	return out
}
