// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestWhatStepsDecideIsNoDrift: of a workload in place, replicas, partition and whose Pods stay are as they are there.
func TestWhatStepsDecideIsNoDrift(t *testing.T) {
	set := func(annotations map[string]any, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "StatefulSet",
			"metadata": map[string]any{"name": "db", "namespace": "shop", "annotations": annotations}, "spec": spec,
		}}
	}
	partition := func(n int64) map[string]any { return map[string]any{"rollingUpdate": map[string]any{"partition": n}} }
	released := wanted{digest: "1", content: set(nil, map[string]any{
		"replicas": int64(4), "revisionHistoryLimit": int64(5), "updateStrategy": partition(1),
	})}
	live := set(map[string]any{shipper.BaseAnnotation: "web-1", "theirs": "x"}, map[string]any{
		"replicas": int64(6), "revisionHistoryLimit": int64(7), "updateStrategy": partition(3), "more": true,
	})
	live.SetResourceVersion("9")
	want := set(map[string]any{shipper.BaseAnnotation: "web-1", shipper.InstalledDigestAnnotation: "1"}, map[string]any{
		"replicas": int64(6), "revisionHistoryLimit": int64(5), "updateStrategy": partition(3),
	})
	want.SetResourceVersion("9")
	got := released.stepped(live)
	if got.GetOwnerReferences() == nil {
		unstructured.RemoveNestedField(got.Object, "metadata", "ownerReferences")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	bare := released.stepped(set(nil, map[string]any{"revisionHistoryLimit": int64(7)}))
	if n, found, _ := unstructured.NestedInt64(bare.Object, "spec", "replicas"); found {
		t.Errorf("replicas are %d, and nothing has set them", n)
	}
}
