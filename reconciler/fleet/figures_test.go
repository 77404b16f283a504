// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// resources makes a list of pairs of name and quantity.
func resources(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func node(name string, capacity, allocatable corev1.ResourceList) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Capacity: capacity, Allocatable: allocatable}}
}

// written is a list as JSON has it.
func written(list corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, quantity := range list {
		out[string(name)] = quantity.String()
	}
	return out
}

func TestNodesAreSummedByResource(t *testing.T) {
	a := node("a", resources("cpu", "4", "memory", "16Gi", "pods", "110", "nvidia.com/gpu", "1"), resources("cpu", "3920m", "memory", "15Gi"))
	b := node("b", resources("cpu", "2", "memory", "8192Mi", "ephemeral-storage", "10G"), resources("cpu", "1500m", "memory", "7Gi"))
	for name, tc := range map[string]struct {
		nodes []*corev1.Node
		count int32
		want  []map[string]string
	}{
		"no Nodes": {nil, 0, []map[string]string{{}, {}}},
		"one without figures, as before its kubelet reports": {
			[]*corev1.Node{node("new", nil, nil)}, 1, []map[string]string{{}, {}},
		},
		"two": {[]*corev1.Node{a, b}, 2, []map[string]string{
			{"cpu": "6", "memory": "24Gi", "pods": "110", "nvidia.com/gpu": "1", "ephemeral-storage": "10G"},
			{"cpu": "5420m", "memory": "22Gi"},
		}},
		"two in the other order": {[]*corev1.Node{b, a}, 2, []map[string]string{
			{"cpu": "6", "memory": "24Gi", "pods": "110", "nvidia.com/gpu": "1", "ephemeral-storage": "10G"},
			{"cpu": "5420m", "memory": "22Gi"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := totalsOf(tc.nodes)
			if got.Count != tc.count {
				t.Errorf("count is %d, want %d", got.Count, tc.count)
			}
			if diff := cmp.Diff(tc.want, []map[string]string{written(got.Capacity), written(got.Allocatable)}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	own := map[string]string{"cpu": "4", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "1"}
	if diff := cmp.Diff(own, written(a.Status.Capacity)); diff != "" {
		t.Errorf("summing changes a cached Node (-want +got):\n%s", diff)
	}
}

func TestAtMostThirtyResourcesAreSummed(t *testing.T) {
	list := resources("cpu", "1", "memory", "1Gi", "pods", "1", "ephemeral-storage", "1")
	for i := range 40 {
		list[corev1.ResourceName(fmt.Sprintf("a.example.com/r%02d", i))] = resource.MustParse("1")
	}
	got := totalsOf([]*corev1.Node{node("a", list, nil)}).Capacity
	_, last := got["a.example.com/r25"]
	_, more := got["a.example.com/r26"]
	_, memory := got["memory"]
	if len(got) != 30 || !last || more || !memory {
		t.Errorf("%d resources are summed, want cpu, memory, pods, ephemeral-storage and r00 to r25: %v", len(got), written(got))
	}
}

func TestAStrippedNodeIsWhatIsSummed(t *testing.T) {
	full := func(heartbeat int64, cordoned bool) *corev1.Node {
		n := node("a",
			resources("cpu", "4", "hugepages-2Mi", "0", "nvidia.com/gpu", "2", "attachable-volumes-csi-x", "8", "kubernetes.io/batch", "1"),
			resources("cpu", "3"))
		n.UID, n.ResourceVersion, n.Labels = "u", "7", map[string]string{"zone": "x"}
		n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
		n.Spec.Unschedulable = cordoned
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.Unix(heartbeat, 0)}}
		n.Status.Images = []corev1.ContainerImage{{Names: []string{"web"}}}
		return n
	}
	want := node("a", resources("cpu", "4", "nvidia.com/gpu", "2"), resources("cpu", "3"))
	want.UID, want.ResourceVersion = "u", "7"
	for name, in := range map[string]*corev1.Node{"at rest": full(1, false), "after a heartbeat": full(2, false), "cordoned": full(2, true)} {
		t.Run(name, func(t *testing.T) {
			got, err := stripNode(in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shipper-system", Name: name}, Data: data}
}

func TestDeclaredPropertiesAreJudged(t *testing.T) {
	const form = "1 to 253 letters, digits, '-', '_', '.' and '/', such as cpu.allocatable"
	const kind = "not a quantity such as 5, 500m or 2Gi"
	long := strings.Repeat("a", 254)
	for name, tc := range map[string]struct {
		in   []*corev1.ConfigMap
		want *Declared
	}{
		"none": {nil, &Declared{}},
		"quantities": {
			[]*corev1.ConfigMap{configMap("a", map[string]string{"tier": "1", "disk.io/iops_max": "30k", "x": "-5"})},
			&Declared{Properties: map[string]string{"tier": "1", "disk.io/iops_max": "30k", "x": "-5"}},
		},
		"a version": {
			[]*corev1.ConfigMap{configMap("a", map[string]string{"mesh": "v1.22.3"})},
			&Declared{LeftOut: "these properties are left out: mesh of ConfigMap a: " + kind},
		},
		"quantities that take minutes to parse": {
			[]*corev1.ConfigMap{configMap("a", map[string]string{"x": "1e-999999999", "y": "1234567890123456789e999999999"})},
			&Declared{LeftOut: "these properties are left out: x of ConfigMap a: " + kind + "; y of ConfigMap a: " + kind},
		},
		"a value that nothing can be compared with": {
			[]*corev1.ConfigMap{configMap("a", map[string]string{"good": "1", "size": "lots", "empty": ""})},
			&Declared{
				Properties: map[string]string{"good": "1"},
				LeftOut:    "these properties are left out: empty of ConfigMap a: " + kind + "; size of ConfigMap a: " + kind,
			},
		},
		"a name of no form": {
			[]*corev1.ConfigMap{configMap("a", map[string]string{"x y": "1", "x:": "1", long: "1"})},
			&Declared{LeftOut: "these properties are left out: " + long[:63] + "… of ConfigMap a: " + form +
				"; x y of ConfigMap a: " + form + "; x: of ConfigMap a: " + form},
		},
		"a value that is too long": {
			[]*corev1.ConfigMap{configMap("a", map[string]string{"x": strings.Repeat("1", 64)})},
			&Declared{LeftOut: "these properties are left out: x of ConfigMap a: " + kind},
		},
		"one property in two ConfigMaps": {
			[]*corev1.ConfigMap{configMap("b", map[string]string{"tier": "2"}), configMap("a", map[string]string{"tier": "1"})},
			&Declared{
				Properties: map[string]string{"tier": "1"},
				LeftOut:    "these properties are left out: tier of ConfigMap b: ConfigMap a has it already",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, declaredIn(tc.in)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAtMostAHundredPropertiesAreTaken(t *testing.T) {
	data := map[string]string{}
	for i := range 115 {
		data[fmt.Sprintf("p%03d", i)] = "1"
	}
	got := declaredIn([]*corev1.ConfigMap{configMap("a", data)})
	_, last := got.Properties["p099"]
	if len(got.Properties) != 100 || !last || !strings.HasSuffix(got.LeftOut, "a cluster has at most 100; and 5 more") {
		t.Errorf("%d properties are taken, and the message is %q", len(got.Properties), got.LeftOut)
	}
}
