// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestPropertiesAreCompared(t *testing.T) {
	observed := func(c *shipper.Cluster) {
		nodes(3)(c)
		c.Status.KubernetesVersion = "v1.33.4-gke.1"
		c.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("12"), "memory": resource.MustParse("64Gi")}
		c.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("11500m"), "nvidia.com/gpu": resource.MustParse("8")}
		c.Status.Properties = map[string]string{"disks": "2", "nodes": "99", "racks": "5"}
		c.Spec.Properties = map[string]string{"price": "0.5", "racks": "7"}
	}
	for _, tc := range []struct {
		name     string
		operator shipper.PropertyOperator
		value    string
		want     bool
	}{
		{"nodes", shipper.PropertyGt, "2", true}, {"nodes", shipper.PropertyGt, "3", false},
		{"nodes", shipper.PropertyGe, "3", true}, {"nodes", shipper.PropertyGe, "4", false},
		{"nodes", shipper.PropertyEq, "3000m", true}, {"nodes", shipper.PropertyEq, "99", false},
		{"nodes", shipper.PropertyNe, "4", true}, {"nodes", shipper.PropertyNe, "3", false},
		{"nodes", shipper.PropertyLe, "3", true}, {"nodes", shipper.PropertyLe, "2", false},
		{"nodes", shipper.PropertyLt, "4", true}, {"nodes", shipper.PropertyLt, "3", false},
		{"nodes", "Like", "3", false}, {"nodes", shipper.PropertyNe, "lots", false},
		{"cpu.capacity", shipper.PropertyEq, "12", true}, {"cpu.allocatable", shipper.PropertyLt, "12", true},
		{"memory.capacity", shipper.PropertyEq, "65536Mi", true}, {"memory.allocatable", shipper.PropertyNe, "1", false},
		{"nvidia.com/gpu.allocatable", shipper.PropertyGe, "8", true}, {"nvidia.com/gpu.capacity", shipper.PropertyGe, "0", false},
		{"disks", shipper.PropertyEq, "2", true}, {"price", shipper.PropertyLe, "500m", true},
		{"racks", shipper.PropertyEq, "7", true}, {"unknown", shipper.PropertyNe, "1", false},
		{"kubernetes", shipper.PropertyEq, "1.33", true}, {"kubernetes", shipper.PropertyGt, "1.33", false},
		{"kubernetes", shipper.PropertyGe, "v1.33.4", true}, {"kubernetes", shipper.PropertyGt, "1.33.3", true},
		{"kubernetes", shipper.PropertyLt, "1.34", true}, {"kubernetes", shipper.PropertyGe, "1.4", true},
		{"kubernetes", shipper.PropertyNe, "1", false}, {"kubernetes", shipper.PropertyEq, "1.33.4.0", false},
	} {
		d := placement.Decide(input(requires(all(), where(tc.name, tc.operator, tc.value)), member("a", "r", observed)))
		if got := len(d.Chosen) == 1; got != tc.want {
			t.Errorf("%s %s %s: got %t (%s)", tc.name, tc.operator, tc.value, got, d.Verdicts[0].Message)
		}
	}
}

func TestAClusterIsSortedByItsVersion(t *testing.T) {
	version := func(text string) change { return func(c *shipper.Cluster) { c.Status.KubernetesVersion = text } }
	p := prefers(pickN(1), shipper.PreferredClusterTerm{
		Weight: 100, Sort: &shipper.PropertySort{Property: "kubernetes", Order: shipper.SortDescending},
	})
	d := placement.Decide(input(p, member("a", "r", version("v1.9.11")), member("b", "r", version("v1.10.2")),
		member("c", "r", version("v1.10.0+k3s1")), member("d", "r", version("none"))))
	if len(d.Chosen) != 1 || d.Chosen[0] != "b" {
		t.Errorf("chose %v", d.Chosen)
	}
}

// A quantity with an exponent of millions takes seconds, and megabytes, to parse or to compare.
func TestAHugeQuantityCostsNoTime(t *testing.T) {
	huge := func(c *shipper.Cluster) {
		c.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("1e99999999")}
		c.Status.Properties = map[string]string{"down": "1e-99999999", "up": "1e+99999999", "up.e": "1E99999999"}
	}
	allocated := func() uint64 {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.TotalAlloc
	}
	before := allocated()
	for _, name := range []string{"cpu.capacity", "down", "up", "up.e"} {
		in := input(requires(all(), where(name, shipper.PropertyGe, "1")), member("a", "r", huge))
		if d := placement.Decide(in); d.Verdicts[0].Reason != shipper.PlacementPropertyUnknown {
			t.Errorf("%s: got %+v", name, d.Verdicts[0])
		}
	}
	if took := allocated() - before; took > 1<<20 {
		t.Errorf("it took %d bytes", took)
	}
}
