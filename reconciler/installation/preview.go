// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
)

// Cluster is what of a cluster decides what is installed there.
type Cluster struct {
	// Name and Region decide which values it gets.
	Name, Region string
	// KubeVersion and APIVersions are what templates may ask for; empty as in chart.Target.
	KubeVersion string
	APIVersions []string
	// HasNamespace tells of a kind whether its objects live in a namespace; known is false when the cluster does not know it.
	HasNamespace func(schema.GroupVersionKind) (namespaced, known bool)
}

// Preview returns what a Release installs in a cluster where nothing of it is there, in the order it is written. The
// references to the anchor are left out, which is made there, and so are hooks, which are run and not installed.
func Preview(ctx context.Context, renderer Renderer, rel *shipper.Release, in Cluster) ([]*unstructured.Unstructured, error) {
	it := &shipper.InstallationTarget{ObjectMeta: metav1.ObjectMeta{Namespace: rel.Namespace, Name: rel.Name, Labels: rel.Labels}}
	from := sources{
		Chart: rel.Spec.Environment.Chart, Digest: rel.Annotations[shipper.ReleaseChartDigestAnnotation],
		values: chart.LayersOf(&rel.Spec.Environment), regions: map[string]string{in.Name: in.Region},
	}
	source, err := from.in(in.Name)
	if err != nil {
		return nil, err
	}
	objects, err := newRendering(ctx, renderer, from).render(source, target(it, in.KubeVersion, in.APIVersions))
	if err != nil {
		return nil, err
	}
	objects, _ = part(objects)
	out := make([]*unstructured.Unstructured, 0, len(objects))
	for _, w := range objects {
		namespace := w.content.GetNamespace()
		if namespaced, known := in.HasNamespace(w.content.GroupVersionKind()); known && namespaced {
			namespace = rel.Namespace
		} else if known {
			namespace = ""
		}
		object := w.in(namespace)
		if isDeployment(object) {
			if err := withoutPods(object); err != nil {
				return nil, err
			}
		}
		out = append(out, object)
	}
	return out, nil
}
