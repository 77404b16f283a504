// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// target is the index of the Deployment of the Canary. why says why there is none.
func (c *flaggerCanary) target(all []document) (at int, why string) {
	ref, d := c.Spec.TargetRef, all[c.index]
	switch {
	case ref.Name == "":
		return -1, "names nothing: write the kind and the name of the Deployment"
	case ref.Kind == "DaemonSet":
		return -1, fmt.Sprintf("names the DaemonSet %s, and the Canary is not converted: the Pods of a DaemonSet cannot be counted out in "+
			"steps; make it a Deployment, or place it as it is with an Application with resources", ref.Name)
	case ref.Kind == "Service":
		return -1, fmt.Sprintf("names the Service %s, and the Canary is not converted: an Application has Pods of its own; name the Deployment "+
			"behind the Service", ref.Name)
	case ref.Kind != "" && ref.Kind != "Deployment":
		return -1, fmt.Sprintf("names the %s %s, and the Canary is not converted: only Deployments are", ref.Kind, ref.Name)
	}
	at = slices.IndexFunc(all, func(other document) bool {
		return other.is("apps/v1", "Deployment") && other.GetName() == ref.Name && other.besides(d)
	})
	if at < 0 {
		return -1, fmt.Sprintf("names the Deployment %s, which is not in the input, and the Canary is not converted: the chart needs its Pod "+
			"template; add the Deployment, and convert both together", ref.Name)
	}
	return at, ""
}

// deploymentPods is the Pod template and the selector of a Deployment.
func deploymentPods(d document) (template, selector map[string]any, err error) {
	for _, part := range []struct {
		field string
		into  *map[string]any
	}{{"template", &template}, {"selector", &selector}} {
		fields, _, err := unstructured.NestedMap(d.Object, "spec", part.field)
		switch {
		case err != nil:
			return nil, nil, d.failed("spec."+part.field, "is not a map")
		case len(fields) == 0:
			return nil, nil, d.failed("spec."+part.field, "is missing")
		}
		*part.into = fields
	}
	unstructured.RemoveNestedField(template, "metadata", "creationTimestamp")
	return template, selector, nil
}

// replicas is the number of Pods that the new Pods have in Flagger: those of the Deployment or, with an autoscaler, at least its minimum.
func (c *canaryConversion) replicas() int32 {
	d := c.all[c.target]
	given, _, _ := unstructured.NestedInt64(d.Object, "spec", "replicas")
	out := given
	if at := c.autoscaler(); at >= 0 {
		hpa := c.all[at]
		least, found, _ := unstructured.NestedInt64(hpa.Object, "spec", "minReplicas")
		most, _, _ := unstructured.NestedInt64(hpa.Object, "spec", "maxReplicas")
		if !found {
			least = 1
		}
		c.used = append(c.used, at)
		out = max(given, least, 1)
		c.report.addOf(hpa, "spec", "is left out: Shipper sets the number of Pods, and the Application has replicaCount: %d; the autoscaler "+
			"makes %d to %d: set replicaCount to what your peak needs", out, least, most)
	} else if given <= 0 {
		out = max(c.ofPrimary(), 1)
		c.report.addOf(d, "spec.replicas", "is absent or 0: the Application has replicaCount: %d, as many Pods as Flagger runs", out)
	}
	return int32(min(out, math.MaxInt32))
}

// ofPrimary is the number of Pods of the Deployment that Flagger made; 0 if it is not in the input.
func (c *canaryConversion) ofPrimary() int64 {
	for _, d := range c.all {
		if d.is("apps/v1", "Deployment") && d.GetName() == c.Spec.TargetRef.Name+"-primary" && d.besides(c.document) {
			n, _, _ := unstructured.NestedInt64(d.Object, "spec", "replicas")
			return n
		}
	}
	return 0
}

// autoscaler is the index of the HorizontalPodAutoscaler of the Canary or its Deployment; -1 if it is not in the input.
func (c *canaryConversion) autoscaler() int {
	return slices.IndexFunc(c.all, func(d document) bool {
		if d.GetKind() != "HorizontalPodAutoscaler" || !d.besides(c.document) {
			return false
		}
		target, _, _ := unstructured.NestedString(d.Object, "spec", "scaleTargetRef", "name")
		return c.Spec.AutoscalerRef != nil && d.GetName() == c.Spec.AutoscalerRef.Name || target == c.Spec.TargetRef.Name
	})
}

// configs reports the ConfigMaps and Secrets of the Pods that are not in the chart: Flagger watches them.
func (c *canaryConversion) configs() {
	var found []string
	add := func(kind string, value any) {
		name, _ := value.(string)
		inChart := kind == "ConfigMap" && slices.ContainsFunc(c.all, func(d document) bool {
			return d.is("v1", kind) && d.GetName() == name && d.besides(c.document)
		})
		if name != "" && !inChart && !slices.Contains(found, kind+" "+name) {
			found = append(found, kind+" "+name)
		}
	}
	var visit func(any)
	visit = func(value any) {
		switch value := value.(type) {
		case []any:
			for _, item := range value {
				visit(item)
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				fields, _ := value[key].(map[string]any)
				switch key {
				case "configMap", "configMapKeyRef", "configMapRef":
					add("ConfigMap", fields["name"])
				case "secretKeyRef", "secretRef":
					add("Secret", fields["name"])
				case "secret":
					add("Secret", cmp.Or[any](fields["secretName"], fields["name"]))
				}
				visit(value[key])
			}
		}
	}
	spec, _, _ := unstructured.NestedMap(c.all[c.target].Object, "spec", "template", "spec")
	visit(spec)
	if len(found) > 0 {
		c.report.add("spec.targetRef", "Flagger begins an analysis, too, when one of these changes, and the old Pods keep a copy: %s: here only "+
			"a change of the Application makes a Release: give what changes another name, and write that into the Pod template",
			strings.Join(found, ", "))
	}
}
