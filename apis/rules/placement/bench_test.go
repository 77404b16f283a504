// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// thousand are a thousand clusters in ten regions and thirty zones, a tenth of them tainted.
func thousand() []shipper.Cluster {
	out := make([]shipper.Cluster, 1000)
	for i := range out {
		out[i] = member(fmt.Sprintf("cluster-%04d", i*577%1000), fmt.Sprintf("region-%d", i%10), nodes(int32(i%97)),
			label("env", []string{"prod", "dev"}[i%2]), label("zone", fmt.Sprintf("zone-%d", i%30)),
			declares("price", fmt.Sprintf("%dm", i)), offers("gpu", "pv"), func(c *shipper.Cluster) {
				c.Status.KubernetesVersion = fmt.Sprintf("v1.%d.%d-gke.100", 30+i%8, i%5)
				c.Status.Allocatable = corev1.ResourceList{"cpu": *resource.NewMilliQuantity(int64(i)*1500, resource.DecimalSI)}
			})
		if i%10 == 3 {
			taint("gpu", "yes")(&out[i])
			taint("team", "a")(&out[i])
		}
	}
	return out
}

// BenchmarkDecide1000 decides over a thousand clusters with a policy that uses all there is. It takes at most 5 ms.
func BenchmarkDecide1000(b *testing.B) {
	sorter := func(property string, weight int32, term shipper.ClusterTerm) shipper.PreferredClusterTerm {
		return shipper.PreferredClusterTerm{
			Weight: weight, ClusterTerm: term, Sort: &shipper.PropertySort{Property: property, Order: shipper.SortDescending},
		}
	}
	both := withLabel("env", "prod", "dev")
	both.Properties = append(where("kubernetes", shipper.PropertyGe, "1.31").Properties,
		where("cpu.allocatable", shipper.PropertyGt, "2").Properties...)
	for _, count := range []int32{10, 100, 1000} {
		p := spreads(prefers(pickN(count),
			sorter("nodes", 100, withLabel("env", "prod")), sorter("price", -50, shipper.ClusterTerm{}),
			shipper.PreferredClusterTerm{Weight: 20, ClusterTerm: withLabel(shipper.RegionLabel, "region-1", "region-2")}),
			over(shipper.RegionLabel, 2), softly(over("zone", 1)))
		p.Affinity.Required = []shipper.ClusterTerm{withLabel("tier", "none"), both, where("nodes", shipper.PropertyGt, "90")}
		in := input(tolerating(p, shipper.ClusterToleration{Key: "gpu", Value: "yes"}), thousand()...)
		in.Requirements = capable(in.Requirements, "gpu", "pv")
		b.Run(fmt.Sprintf("PickN=%d", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				placement.Decide(in).Status()
			}
		})
	}
}
