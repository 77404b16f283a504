// SPDX-License-Identifier: Apache-2.0

package install

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestJoinKeepsMetricsThatTheFileDoesNotGive(t *testing.T) {
	metrics := func(address string) *shipper.ClusterMetrics {
		return &shipper.ClusterMetrics{Address: address, SecretName: "prometheus", TenantLabel: "namespace"}
	}
	const old, other = "https://prometheus.example.com", "https://other.example.com"
	for sentence, tc := range map[string]struct {
		has, given, want *shipper.ClusterMetrics
		region, how      string
	}{
		"the file has none, and differs":         {has: metrics(old), want: metrics(old), region: "us-east", how: updated},
		"the file has none, and does not differ": {has: metrics(old), want: metrics(old), region: "eu-west", how: unchanged},
		"the file has others": {
			has: metrics(old), given: metrics(other), want: metrics(other), region: "eu-west", how: updated,
		},
		"the file has the same":   {has: metrics(old), given: metrics(old), want: metrics(old), region: "eu-west", how: unchanged},
		"the Cluster has none":    {given: metrics(old), want: metrics(old), region: "eu-west", how: updated},
		"neither of the two does": {region: "us-east", how: updated},
	} {
		t.Run(sentence, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, shipper.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&shipper.Cluster{
				ObjectMeta: metav1.ObjectMeta{Name: "eu-1"},
				Spec:       shipper.ClusterSpec{Region: "eu-west", Capabilities: []string{"gpu"}, Metrics: tc.has},
			}).Build()
			m := &Management{Client: c, Report: NewReport(io.Discard), Namespace: "shipper-system"}
			spec := shipper.ClusterSpec{Region: tc.region, Metrics: tc.given} // without capabilities: join takes them away
			if tc.how == unchanged {
				spec.Capabilities = []string{"gpu"}
			}
			_, how, err := m.cluster(t.Context(), "eu-1", spec)
			if err != nil || how != tc.how {
				t.Errorf("got %s, %v, want %s", how, err, tc.how)
			}
			var got shipper.Cluster
			if err := c.Get(t.Context(), client.ObjectKey{Name: "eu-1"}, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Spec.Metrics); diff != "" || got.Spec.Region != tc.region {
				t.Errorf("metrics (-want +got), in region %s:\n%s", got.Spec.Region, diff)
			}
			if tc.how == updated && len(got.Spec.Capabilities) > 0 {
				t.Errorf("capabilities that the file does not give stay: %v", got.Spec.Capabilities)
			}
		})
	}
}
