// SPDX-License-Identifier: Apache-2.0

package duplicates

import (
	"fmt"

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

// renameInServices renames the ports of Pods in the Services that select them. lost has the renames by the index of the workload. A
// Service that needs the old name for other Pods is a finding.
func renameInServices(objects []unstructured.Unstructured, lost map[int]renames) (found []Finding) {
	if len(lost) == 0 {
		return nil
	}
	for i := range objects {
		o := &objects[i]
		selector, _, _ := unstructured.NestedStringMap(o.Object, "spec", "selector")
		if o.GetAPIVersion() != "v1" || o.GetKind() != "Service" || len(selector) == 0 {
			continue
		}
		copied := o.DeepCopy()
		for n, element := range elementsAt(copied.Object, []string{"spec", "ports"}) {
			port, _ := element.(map[string]any)
			name, _ := port["targetPort"].(string)
			to, others := renamed(objects, lost, labels.SelectorFromSet(selector), name)
			if others {
				found = append(found, Finding{Object: i, Refused: true, Text: fmt.Sprintf(
					"spec.ports[%d].targetPort %q is a port that has another name too in some of the Pods, and server-side apply takes one name "+
						"for a port: give the port one name in all of them", n, name)})
			} else if to != "" {
				port["targetPort"] = to
			}
		}
		objects[i] = *copied
	}
	return found
}

// renamed is the new name of a port of the Pods that a Service selects; empty if it keeps its name. others is set if some of them keep it,
// or have yet another one.
func renamed(objects []unstructured.Unstructured, lost map[int]renames, selector labels.Selector, name string) (to string, others bool) {
	stays := false
	for i := range objects {
		at, isWorkload := podFields[objects[i].GetAPIVersion()+" "+objects[i].GetKind()]
		if !isWorkload || name == "" {
			continue
		}
		metadata := append(append([]string{}, at[:len(at)-1]...), "metadata", "labels")
		if of, _, _ := unstructured.NestedStringMap(objects[i].Object, metadata...); !selector.Matches(labels.Set(of)) {
			continue
		}
		if is := lost[i][name]; is != "" {
			others = others || to != "" && to != is
			to = is
		}
		stays = stays || hasPort(objects[i].Object, at, name)
	}
	return to, others || to != "" && stays
}

// hasPort reports whether Pods have a port of a name.
func hasPort(object map[string]any, at []string, name string) bool {
	for _, containers := range []string{"containers", "initContainers"} {
		for _, c := range elementsAt(object, append(append([]string{}, at...), containers)) {
			container, _ := c.(map[string]any)
			for _, p := range elementsAt(container, []string{"ports"}) {
				if port, is := p.(map[string]any); is && port["name"] == name {
					return true
				}
			}
		}
	}
	return false
}
