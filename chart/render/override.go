// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"context"
	"crypto/sha256"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rules "shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/override"
	"shipper.dev/shipper/chart/values"
)

// override applies the overrides of t to the objects and the hooks, which are the manifest's own.
func (m *Manifest) override(ctx context.Context, t Target) error {
	if len(t.Overrides) == 0 {
		return nil
	}
	var err error
	if m.Objects, m.sources, err = overridden(ctx, m.Objects, m.sources, t); err != nil {
		return err
	}
	m.hooks, m.hookSources, err = overridden(ctx, m.hooks, m.hookSources, t)
	return err
}

// overridden are objects with the overrides of t, and the sources of those that are left.
func overridden(ctx context.Context, objects []unstructured.Unstructured, sources []string, t Target) (
	[]unstructured.Unstructured, []string, error,
) {
	var out []unstructured.Unstructured
	var of []string
	for i := range objects {
		changed, err := override.Apply(ctx, &objects[i], namespaceOf(&objects[i], t.Namespace), t.Overrides)
		if ended := ctx.Err(); ended != nil {
			return nil, nil, late(ended)
		}
		if err != nil {
			return nil, nil, err
		}
		if changed != nil {
			out, of = append(out, *changed), append(of, sources[i])
		}
	}
	return out, of, nil
}

// namespaceOf is the namespace that an object of a chart is written to; empty for a built-in kind without one, whatever the object has. The
// namespace of a custom kind is that of the Release where the object has none: only the cluster knows whether the kind has one.
func namespaceOf(o *unstructured.Unstructured, release string) string {
	if builtin(o.GroupVersionKind()) && clusterScoped[o.GetKind()] {
		return ""
	}
	return cmp.Or(o.GetNamespace(), release)
}

// overridesIn are the changes of a Release in a cluster.
func overridesIn(rel *shipper.Release, in *Cluster) []rules.Change {
	return rules.Resolve(rel.Spec.Overrides, rel.Namespace, rel.Name, in.Object)
}

// GroupOf is Group for a Release, whose overrides may differ in clusters that have the same values. The error is that of ctx.
func GroupOf(ctx context.Context, rel *shipper.Release, clusters []Cluster) ([]Alike, error) {
	out := Group(values.LayersOf(&rel.Spec.Environment), clusters)
	if len(rel.Spec.Overrides) == 0 || len(clusters) == 0 {
		return out, nil
	}
	byName := map[string]Cluster{}
	for _, c := range clusters {
		byName[c.Place.Cluster] = c
	}
	var split []Alike
	for _, alike := range out {
		at := map[[sha256.Size]byte]int{}
		for _, name := range alike.Names {
			if err := ctx.Err(); err != nil {
				return nil, late(err)
			}
			one := byName[name]
			key := rules.Digest(overridesIn(rel, &one))
			i, known := at[key]
			if !known {
				i = len(split)
				at[key] = i
				next := Alike{Cluster: alike.Cluster}
				next.Object = one.Object
				split = append(split, next)
			}
			split[i].Names = append(split[i].Names, name)
		}
	}
	return split, nil
}
