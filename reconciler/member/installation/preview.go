// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/values"
)

// Cluster is what of a cluster decides what is installed there.
type Cluster struct {
	// Name and Region decide which values it gets.
	Name, Region string
	// KubeVersion and APIVersions are what templates may ask for; empty as in render.Target.
	KubeVersion string
	APIVersions []string
	// HasNamespace reports whether objects of a kind live in a namespace; known is false when the cluster does not know it.
	HasNamespace func(schema.GroupVersionKind) (namespaced, known bool)
	// Object decides which overrides there are; nil for a cluster that is not known.
	Object *shipper.Cluster
}

// Preview returns what a Release installs in a cluster where nothing of it is there, in the order it is written, and the hooks
// that are run, in their order. The references to the anchor are left out, which is made there.
func Preview(
	ctx context.Context, renderer Renderer, rel *shipper.Release, in Cluster,
) (objects, hooks []*unstructured.Unstructured, err error) {
	from := sources{
		Chart: rel.Spec.Environment.Chart, Digest: rel.Annotations[shipper.ReleaseChartDigestAnnotation],
		values: values.LayersOf(&rel.Spec.Environment), regions: map[string]string{in.Name: in.Region},
		pinned: values.PinnedOf(rel), open: true, overrides: override.Resolve(rel.Spec.Overrides, rel.Namespace, rel.Name, in.Object),
	}
	source, err := from.in(in.Name)
	if err != nil {
		return nil, nil, err
	}
	t := render.TargetOf(&rel.ObjectMeta, source.Chart.Naming, in.KubeVersion, in.APIVersions)
	all, err := (&rendering{renderer: renderer, sources: from}).render(ctx, source, t, nil)
	if err != nil {
		return nil, nil, err
	}
	installed, run := part(all)
	if objects, err = in.placed(installed, rel.Namespace); err != nil {
		return nil, nil, err
	}
	hooks, err = in.placed(run, rel.Namespace)
	return objects, hooks, err
}

// placed are objects as they are written for a Release of a namespace.
func (c Cluster) placed(all []wanted, own string) ([]*unstructured.Unstructured, error) {
	out := make([]*unstructured.Unstructured, 0, len(all))
	for _, w := range all {
		namespace := w.content.GetNamespace()
		if namespaced, known := c.HasNamespace(w.content.GroupVersionKind()); known && namespaced {
			namespace = own
		} else if known {
			namespace = ""
		}
		object := w.in(namespace)
		if w.hook == nil && isDeployment(object) {
			if err := withoutPods(object); err != nil {
				return nil, err
			}
		}
		out = append(out, object)
	}
	return out, nil
}
