// SPDX-License-Identifier: Apache-2.0

package intern

import (
	"reflect"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const pod = `
metadata:
  name: web-1
  namespace: team
  labels: {shipper-app: web, shipper-release: web-1}
  ownerReferences: [{kind: ReplicaSet, name: rs, uid: u}]
status:
  phase: Running
  conditions: [{type: Ready, status: "True"}, {type: Initialized, status: "True"}, {type: PodScheduled, status: "True"}]
`

func read(t *testing.T) *corev1.Pod {
	t.Helper()
	out := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(pod), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhatIsEqualIsShared(t *testing.T) {
	table, a, b := NewTable(), read(t), read(t)
	a.Status.Conditions = slices.Grow(a.Status.Conditions, 9)
	table.Share(a)
	table.Share(b)
	if reflect.ValueOf(a.Labels).Pointer() != reflect.ValueOf(b.Labels).Pointer() {
		t.Error("two objects have labels of their own")
	}
	for what, of := range map[string][2]string{
		"name": {a.Name, b.Name}, "label": {a.Labels["shipper-app"], b.Labels["shipper-app"]},
		"condition": {string(a.Status.Conditions[1].Type), string(b.Status.Conditions[1].Type)},
		"owner":     {a.OwnerReferences[0].Kind, b.OwnerReferences[0].Kind},
	} {
		if unsafe.StringData(of[0]) != unsafe.StringData(of[1]) {
			t.Errorf("two objects have a %s of their own", what)
		}
	}
	if got := cap(a.Status.Conditions); got != 3 {
		t.Errorf("a list of 3 has room for %d", got)
	}
}

// TestNothingElseChanges shares at random, with a table in which much takes the place of something else.
func TestNothingElseChanges(t *testing.T) {
	random := randfill.NewWithSeed(1).NilChance(0.3).NumElements(0, 5).MaxDepth(12).Funcs(
		func(values *shipper.ChartValues, _ randfill.Continue) {
			*values = shipper.ChartValues{"a": "b", "c": []any{"d"}}
		},
		func(value *any, _ randfill.Continue) { *value = "any" },
		func(raw *runtime.RawExtension, _ randfill.Continue) { raw.Raw = []byte("{}") },
	)
	table := NewTable()
	for range 200 {
		for _, o := range []client.Object{
			&corev1.Pod{}, &corev1.Secret{}, &corev1.ConfigMap{}, &shipper.Application{}, &shipper.Release{},
			&shipper.InstallationTarget{}, &shipper.CapacityTarget{}, &shipper.TrafficTarget{}, &shipper.Cluster{}, &shipper.RolloutBlock{},
		} {
			random.Fill(o)
			before := o.DeepCopyObject()
			table.Share(o)
			if !equality.Semantic.DeepEqual(before, o) {
				t.Fatalf("%T: -before +after:\n%s", o, cmp.Diff(before, o))
			}
		}
	}
}

func TestManyShareAtOnce(t *testing.T) {
	table := NewTable()
	var all sync.WaitGroup
	for range 8 {
		a := read(t)
		all.Go(func() { table.Share(a) })
	}
	all.Wait()
}

func BenchmarkShare(b *testing.B) {
	table, o := NewTable(), &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(pod), o); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		table.Share(o)
	}
}
