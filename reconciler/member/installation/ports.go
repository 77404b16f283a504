// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/reconciler/member/traffic"
)

// sharedPorts are the ports of a Service that an incumbent shares.
type sharedPorts struct {
	merged    []any
	kept      shipper.KeptPorts
	conflicts []string
	// turned says that the Service would select otherwise than other Releases need.
	turned []string
}

// sharesPorts reports whether an object is a Service that clients of an incumbent may use at the same time. One without a selector has no
// Pods of any Release.
func (i *installer) sharesPorts(object *unstructured.Unstructured) bool {
	return i.byApplication() && object.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Service") &&
		len(section(object, "spec", "selector")) > 0 && !isPreviewService(object)
}

// serviceConflicts says why a Service that is to be written cannot serve the Releases that have traffic as well: a port would lead
// elsewhere, or it would select none of their Pods.
func (i *installer) serviceConflicts(ctx context.Context, s *step) ([]string, error) {
	object := s.in(s.item.Namespace)
	if !i.sharesPorts(object) {
		return nil, nil
	}
	ports, err := i.portsOf(ctx, *s, object)
	if err != nil {
		return nil, i.about("comparing the ports of "+i.called(s.item), err)
	}
	s.ports = &ports
	out := ports.turned
	for _, of := range ports.conflicts {
		if i.rendering.sources.secret() {
			of = "a port leads elsewhere in the incumbent" + chart.Unsaid
		}
		out = append(out, fmt.Sprintf("%s cannot be installed: %s", i.called(s.item), of))
	}
	return out, nil
}

// portsOf are the ports of a live Service with those that other Releases need; empty when there are no others. The traffic worker removes
// what only these need as soon as they have neither traffic nor Pods.
func (i *installer) portsOf(ctx context.Context, s step, object *unstructured.Unstructured) (out sharedPorts, err error) {
	app := i.it.Labels[shipper.AppLabel]
	if others, err := traffic.OthersServe(ctx, i.home, i.member.Client(), i.it, i.member.Name); err != nil || !others {
		return out, err
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(s.item.gvk())
	if err := i.member.Live().Get(ctx, s.item.key(), live); err != nil {
		return out, client.IgnoreNotFound(err)
	}
	if text := turned(live, object); text != "" {
		out.turned = []string{fmt.Sprintf("%s cannot be installed while another Release serves: %s; give it another name, or delete the "+
			"Service in the cluster", i.called(s.item), text)}
		return out, nil
	}
	ports, _ := section(live, "spec")["ports"].([]any)
	newest, _ := section(object, "spec")["ports"].([]any)
	ports = applied(live, ports)
	if out.merged, out.conflicts = lots.MergePorts(ports, newest, nil); len(out.conflicts) > 0 {
		others, own, err := i.templatesBehind(ctx, app, object)
		if err != nil {
			return out, err
		}
		_, out.conflicts = lots.MergePorts(ports, newest, alikeIn(others, own))
	}
	given := map[string]map[string]any{}
	for _, port := range newest {
		if m, is := port.(map[string]any); is {
			given[lots.PortKey(m)] = m
		}
	}
	for _, port := range out.merged {
		m, is := port.(map[string]any)
		if !is {
			continue
		}
		if by := given[lots.PortKey(m)]; by == nil {
			out.kept.Drop = append(out.kept.Drop, lots.PortKey(m))
		} else if by["name"] == nil && m["name"] != nil {
			out.kept.Unname = append(out.kept.Unname, lots.PortKey(m))
		}
	}
	return out, nil
}

// turned says how a Service would select otherwise than a live one that other Releases need; empty if it does not. Of a production Service
// only the traffic worker changes the selector.
func turned(live, object *unstructured.Unstructured) string {
	was, is := isTrafficService(live), isTrafficService(object)
	before, after := section(live, "spec", "selector"), section(object, "spec", "selector")
	switch {
	case len(before) == 0:
		return ""
	case was && !is:
		return "its traffic moves with the Pods of Deployments, and by this chart it selects none of them"
	case is && !was:
		return "it selects Pods that change in place, and by this chart those of Deployments"
	case is:
		return ""
	}
	for key, value := range after {
		if before[key] != value {
			return fmt.Sprintf("its selector has a label that it did not have before, %s", chart.Shorten(fmt.Sprint(key, "=", value)))
		}
	}
	return ""
}

// templatesBehind are those of the Pods behind a Service: of other Releases, and of the target itself. Workloads in place exist once for
// all.
func (i *installer) templatesBehind(
	ctx context.Context, app string, object *unstructured.Unstructured,
) (others, own []corev1.PodTemplateSpec, err error) {
	selector := labels.SelectorFromSet(labels.Set{shipper.BackendLabel(object.GetName()): "true"})
	if !isTrafficService(object) {
		given, _, _ := unstructured.NestedStringMap(object.Object, "spec", "selector")
		selector = labels.SelectorFromSet(given)
	}
	for _, kind := range []string{"StatefulSet", "DaemonSet", "Deployment"} {
		for _, w := range i.all {
			if t, is := behind(w.content, selector); is && w.hook == nil && w.content.GetKind() == kind {
				own = append(own, t)
			}
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(kind + "List"))
		of := client.MatchingLabels{shipper.AppLabel: app}
		if err := i.member.Live().List(ctx, list, client.InNamespace(i.it.Namespace), of); err != nil {
			return nil, nil, fmt.Errorf("listing %ss: %w", kind, err)
		}
		for n := range list.Items {
			o := &list.Items[n]
			replicas, scaled, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
			stays := o.GetAnnotations()[shipper.LotAnnotation] == shipper.LotInPlace
			runs := o.GetLabels()[shipper.ReleaseLabel] != i.it.Name && (!scaled || replicas > 0)
			if t, is := behind(o, selector); is && (stays || runs) {
				others = append(others, t)
			}
		}
	}
	return others, own, nil
}

// behind is the template of a workload's Pods, if a selector matches them.
func behind(o *unstructured.Unstructured, selector labels.Selector) (out corev1.PodTemplateSpec, is bool) {
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(section(o, "spec", "template"), &out)
	return out, err == nil && selector.Matches(labels.Set(out.Labels)) // or the API server says what is wrong
}

// alikeIn reports whether two target ports lead to the same in the Pods of others and in one's own, so that the way back is open. It needs
// others to know.
func alikeIn(others, own []corev1.PodTemplateSpec) func(from, to string) bool {
	return func(from, to string) bool {
		return len(others) > 0 && !slices.ContainsFunc(slices.Concat(others, own), func(t corev1.PodTemplateSpec) bool {
			was, is := portIn(t, from), portIn(t, to)
			return was == 0 || was != is
		})
	}
}

// merge gives an object the ports, and says on it which of them are kept for others.
func (p sharedPorts) merge(object *unstructured.Unstructured) error {
	if len(p.kept.Drop) == 0 {
		return nil
	}
	raw, err := json.Marshal(p.kept)
	if err != nil {
		return fmt.Errorf("writing the kept ports: %w", err)
	}
	annotations := object.GetAnnotations()
	annotations[shipper.KeptPortsAnnotation] = string(raw)
	object.SetAnnotations(annotations)
	return unstructured.SetNestedSlice(object.Object, p.merged, "spec", "ports")
}

// applied are the ports of a live Service that Shipper applied. Those that a user added stay by themselves.
func applied(live *unstructured.Unstructured, ports []any) []any {
	ours := map[string]bool{}
	for _, m := range live.GetManagedFields() {
		if m.Manager != shipper.FieldOwner || m.Operation != metav1.ManagedFieldsOperationApply || m.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Spec struct {
				Ports map[string]any `json:"f:ports"`
			} `json:"f:spec"`
		}
		if json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		for key := range fields.Spec.Ports {
			var port map[string]any
			if len(key) > 2 && json.Unmarshal([]byte(key[2:]), &port) == nil { // k:{"port":80,"protocol":"TCP"}
				ours[lots.PortKey(port)] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(ports), func(port any) bool {
		m, is := port.(map[string]any)
		return !is || !ours[lots.PortKey(m)]
	})
}

// portIn is the number of a port, or of a name, in Pods; 0 if they have no port of the name.
func portIn(t corev1.PodTemplateSpec, port string) int32 {
	if number, err := strconv.ParseInt(port, 10, 32); err == nil {
		return int32(number)
	}
	for _, c := range t.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == port {
				return p.ContainerPort
			}
		}
	}
	return 0
}
