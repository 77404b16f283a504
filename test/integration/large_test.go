// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/test/charts"
)

// largeChart is a chart of the shape of kube-prometheus-stack: its archive is larger than what an Application may hold, most of it
// CustomResourceDefinitions of half a mebibyte with descriptions that do not get smaller.
func largeChart(t *testing.T, definitions int) charts.Archive {
	t.Helper()
	files := maps.Clone(ownKind)
	delete(files, "crds/gizmo.yaml")
	delete(files, "templates/gizmo.yaml")
	files["Chart.yaml"] = "apiVersion: v2\nname: large\nversion: 0.0.1\n"
	noise := rand.NewChaCha8([32]byte{1})
	for n := range definitions {
		var text strings.Builder
		fmt.Fprintf(&text, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: larges%[1]d.large.shipper.test
spec:
  group: large.shipper.test
  scope: Namespaced
  names: {kind: Large%[1]d, listKind: Large%[1]dList, plural: larges%[1]d, singular: large%[1]d}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
`, n)
		for field := range 500 {
			description := make([]byte, 500)
			_, _ = noise.Read(description)
			fmt.Fprintf(&text, "          field%d: {type: string, description: \"%x\"}\n", field, description)
		}
		files[fmt.Sprintf("crds/%d.yaml", n)] = text.String()
	}
	archive, err := charts.PackFiles("large", "0.0.1", files)
	if err != nil {
		t.Fatal(err)
	}
	if len(archive.Bytes) <= render.MaxInlineBytes {
		t.Fatalf("the archive has %d bytes, which an Application may hold", len(archive.Bytes))
	}
	return archive
}

func TestAChartThatNoApplicationMayHoldIsInstalledFromARepository(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	const definitions = 4
	world.charts.Publish(largeChart(t, definitions))
	it := s.install("web-1", "large", "0.0.1", nil, west)
	s.installed("web-1")
	for n := range definitions {
		crd := &metav1.PartialObjectMetadata{}
		crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		s.must(world.clusters[west].Get(s.ctx, client.ObjectKey{Name: fmt.Sprintf("larges%d.large.shipper.test", n)}, crd))
	}
	s.must(s.management.Delete(s.ctx, it))
	s.gone(it)
}
