// SPDX-License-Identifier: Apache-2.0

package lots

import (
	"fmt"
	"slices"
	"strings"
)

// warn finds what may surprise users.
func (t *Table) warn() {
	given := map[string]bool{}
	for i := range t.Entries {
		e := &t.Entries[i]
		if groupKind(e.Object) == deployment && e.Lot == SideBySide {
			given[e.Given] = true
		}
		if groupKind(e.Object) == job {
			t.warnOfWaiting(e)
		}
		if e.Lot == InPlace {
			t.warnOfReplacement(e)
		}
	}
	for i := range t.Entries {
		if e := &t.Entries[i]; e.Lot == Shared && groupKind(e.Object) != secret && groupKind(e.Object) != configMap {
			for _, name := range deploymentsIn(e.Object.Object, given) {
				t.Warnings = append(t.Warnings, fmt.Sprintf("%s names Deployment %s, which exists once per Release under other names", e, name))
			}
		}
	}
}

// warnOfWaiting names the workloads whose containers have the name of a Job in their arguments, as those that wait for it do.
func (t *Table) warnOfWaiting(of *Entry) {
	for i := range t.Entries {
		e, found := &t.Entries[i], false
		if !isWorkload(e.Object) {
			continue
		}
		look := func(argument string) string {
			words := strings.FieldsFunc(argument, func(r rune) bool { return strings.ContainsRune(" \t\n/=,:;\"'", r) })
			found = found || slices.Contains(words, of.Given)
			return argument
		}
		pod := section(podTemplate(e.Object), "spec")
		for _, containers := range []string{"initContainers", "containers"} {
			for _, container := range elements(pod, containers) {
				for _, field := range []string{"command", "args"} {
					list, _ := container[field].([]any)
					for _, argument := range list {
						if text, ok := argument.(string); ok {
							look(text)
						}
					}
				}
				visit(container, []string{"env", "value"}, look)
			}
		}
		if found {
			t.Warnings = append(t.Warnings, fmt.Sprintf("%s names %s in its arguments, which has another name in each Release: "+
				"a container that waits for it never ends; make the Job a hook of the chart", e, of))
		}
	}
}

// warnOfReplacement says how the Pods of a StatefulSet or DaemonSet are replaced, where that is not one by one.
func (t *Table) warnOfReplacement(e *Entry) {
	switch kind := groupKind(e.Object); {
	case kind == deployment:
	case text(e.Object.Object, "spec", "updateStrategy", "type") == "OnDelete":
		t.Warnings = append(t.Warnings, fmt.Sprintf("%s has the update strategy OnDelete: its Pods change when you delete them", e))
	case kind == statefulSet && e.Replicas == 1:
		t.Warnings = append(t.Warnings, fmt.Sprintf("%s has one Pod, and none while that is replaced", e))
	}
}

// deploymentsIn are the names of Deployments that a value refers to by kind and name, sorted.
func deploymentsIn(value any, given map[string]bool) (found []string) {
	switch value := value.(type) {
	case map[string]any:
		kind, _ := value["kind"].(string)
		if name, _ := value["name"].(string); kind == deployment.Kind && given[name] {
			found = append(found, name)
		}
		for _, inner := range value {
			found = append(found, deploymentsIn(inner, given)...)
		}
	case []any:
		for _, inner := range value {
			found = append(found, deploymentsIn(inner, given)...)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
