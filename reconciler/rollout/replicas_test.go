// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
)

// byVersion counts two Pods in clusters of version v1.34.0 and one in others, and how often it is asked.
type byVersion struct {
	Charts
	asked int
}

func (b *byVersion) Replicas(_ context.Context, _ *shipper.Release, in render.Cluster) (int32, error) {
	b.asked++
	if in.KubeVersion == "v1.34.0" {
		return 2, nil
	}
	return 1, nil
}

func TestPodsAreCountedForEachVersionOfClusters(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := shipper.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cluster := func(name, version string) *shipper.Cluster {
		return &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: shipper.ClusterStatus{KubernetesVersion: version}}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		cluster("a", "v1.33.0"), cluster("b", "v1.34.0"), cluster("c", "v1.34.0")).Build()
	charts := &byVersion{}
	r := &pass{Reconciler: &Reconciler{client: c, charts: charts}}
	release := rel(0, 1)
	clusters, err := r.clusters(t.Context(), []string{"a", "b", "c", "gone"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	counts, err := r.count(t.Context(), release, clusters)
	if diff := cmp.Diff(map[string]int32{"a": 1, "b": 2, "c": 2, "gone": 1}, counts); diff != "" || err != nil || charts.asked != 3 {
		t.Errorf("asked %d times, %v (-want +got):\n%s", charts.asked, err, diff)
	}

	for sentence, tc := range map[string]struct {
		had, added string
		want       int32
		asked      int
	}{
		"of another version":  {"a", "b", 2, 1},
		"of the same version": {"b", "c", 7, 0},
	} {
		have := strategy.Release{Release: release, Capacity: capacityTarget(release, []string{tc.had}, map[string]int32{tc.had: 7})}
		want := capacityTarget(release, []string{tc.had, tc.added}, map[string]int32{tc.had: 7, tc.added: 7}).Spec
		charts.asked = 0
		if err := r.countAdded(t.Context(), have, &want); err != nil || want.Clusters[0].TotalReplicaCount != 7 ||
			want.Clusters[1].TotalReplicaCount != tc.want || charts.asked != tc.asked {
			t.Errorf("a cluster %s: %v, %v, asked %d times", sentence, want.Clusters, err, charts.asked)
		}
	}
}
