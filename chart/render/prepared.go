// SPDX-License-Identifier: Apache-2.0

package render

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Prepared is an object to write, or a hook.
type Prepared struct {
	// Object is as it is written.
	Object unstructured.Unstructured
	// Given is the object as the chart rendered it, under the name of its Application: another Release can be made of it. It is shared, and
	// must not be changed. Nil for copies, and by Release.
	Given *unstructured.Unstructured
}

// Again is what a chart rendered by Application before: the Given of all objects, and of all hooks, in their order.
func Again(objects, hooks []unstructured.Unstructured) Manifest {
	return Manifest{
		Objects: objects, hooks: hooks, hookSources: make([]string, len(hooks)), naming: shipper.NamingByApplication,
	}
}

// All are the objects of Prepare, and behind them those of Hooks.
func (m Manifest) All(t Target) ([]Prepared, error) {
	var out []Prepared
	if t.Naming == shipper.NamingByApplication {
		table, err := m.Lots(t)
		if err != nil {
			return nil, err
		}
		for i := range table.Entries {
			out = append(out, Prepared{*table.Entries[i].Object, &m.Objects[i]})
			if copied := table.Entries[i].Copy; copied != nil {
				out = append(out, Prepared{Object: *copied})
			}
		}
	} else {
		objects, err := m.Prepare(t)
		if err != nil {
			return nil, err
		}
		for i := range objects {
			out = append(out, Prepared{Object: objects[i]})
		}
	}
	hooks, err := m.Hooks(t)
	if err != nil {
		return nil, err
	}
	for i := range hooks {
		out = append(out, Prepared{Object: hooks[i], Given: m.givenHook(&hooks[i], t)})
	}
	return out, nil
}

// givenHook is a hook as the chart rendered it: hooks keep their names.
func (m Manifest) givenHook(o *unstructured.Unstructured, t Target) *unstructured.Unstructured {
	for i := range m.hooks {
		given := &m.hooks[i]
		same := given.GroupVersionKind() == o.GroupVersionKind() && given.GetName() == o.GetName() && given.GetNamespace() == o.GetNamespace()
		if same && t.Naming == shipper.NamingByApplication {
			return given
		}
	}
	return nil
}
