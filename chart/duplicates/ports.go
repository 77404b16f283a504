// SPDX-License-Identifier: Apache-2.0

package duplicates

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// renames are the names of ports of Pods that are lost, with the names of the same ports that are left.
type renames map[string]string

// renameInProbes renames a port of a container in its probes and hooks.
func renameInProbes(container map[string]any, from, to string) {
	for _, of := range [][]string{
		{"livenessProbe"}, {"readinessProbe"}, {"startupProbe"}, {"lifecycle", "postStart"}, {"lifecycle", "preStop"},
	} {
		for _, by := range []string{"httpGet", "tcpSocket"} {
			action, _, _ := unstructured.NestedFieldNoCopy(container, append(of, by)...)
			if m, is := action.(map[string]any); is && m["port"] == from {
				m["port"] = to
			}
		}
	}
}

// workload is what Services find of one.
type workload struct {
	labels labels.Set
	lost   renames
	ports  map[string]bool
}

// renameInServices renames the ports of Pods in the Services that select them. lost has the renames by the index of the workload. A
// Service that needs the old name for other Pods is a finding.
func renameInServices(objects []unstructured.Unstructured, lost map[int]renames) (found []Finding) {
	if len(lost) == 0 {
		return nil
	}
	workloads := workloadsIn(objects, lost)
	for i := range objects {
		o := &objects[i]
		selector, _, _ := unstructured.NestedStringMap(o.Object, "spec", "selector")
		if o.GetAPIVersion() != "v1" || o.GetKind() != "Service" || len(selector) == 0 {
			continue
		}
		matcher := labels.SelectorFromSet(selector)
		selected := slices.DeleteFunc(slices.Clone(workloads), func(w workload) bool { return !matcher.Matches(w.labels) })
		copied, r := o.DeepCopy(), remover{}
		for n, element := range elementsAt(copied.Object, []string{"spec", "ports"}) {
			port, _ := element.(map[string]any)
			name, _ := port["targetPort"].(string)
			to, others := renamed(selected, name)
			if others {
				r.add(Finding{Refused: true, Text: fmt.Sprintf(
					"spec.ports[%d].targetPort %q is a port that has another name too in some of the Pods, and server-side apply takes one name "+
						"for a port: give the port one name in all of them", n, name)})
			} else if to != "" {
				port["targetPort"] = to
			}
		}
		objects[i], found = *copied, append(found, r.findings(i)...)
	}
	return found
}

// workloadsIn are those among objects.
func workloadsIn(objects []unstructured.Unstructured, lost map[int]renames) (out []workload) {
	for i := range objects {
		at, is := podFields[objects[i].GetAPIVersion()+" "+objects[i].GetKind()]
		if !is {
			continue
		}
		metadata := append(slices.Clone(at[:len(at)-1]), "metadata", "labels")
		of, _, _ := unstructured.NestedStringMap(objects[i].Object, metadata...)
		out = append(out, workload{labels: of, lost: lost[i], ports: portsOf(objects[i].Object, at)})
	}
	return out
}

// renamed is the new name of a port of the Pods that a Service selects; empty if it keeps its name. others is set if some of them keep it,
// or have yet another one.
func renamed(selected []workload, name string) (to string, others bool) {
	stays := false
	for _, w := range selected {
		if is := w.lost[name]; is != "" {
			others = others || to != "" && to != is
			to = is
		}
		stays = stays || w.ports[name]
	}
	return to, others || to != "" && stays
}

// portsOf are the names of the ports of Pods.
func portsOf(object map[string]any, at []string) map[string]bool {
	out := map[string]bool{}
	for _, containers := range []string{"containers", "initContainers"} {
		for _, c := range elementsAt(object, append(slices.Clone(at), containers)) {
			container, _ := c.(map[string]any)
			for _, p := range elementsAt(container, []string{"ports"}) {
				port, _ := p.(map[string]any)
				if name, is := port["name"].(string); is {
					out[name] = true
				}
			}
		}
	}
	return out
}
