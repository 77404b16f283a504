// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestPortsThatAUserAddedAreNotTheIncumbents(t *testing.T) {
	live := &unstructured.Unstructured{Object: map[string]any{}}
	fields := func(ports string) *metav1.FieldsV1 {
		return metav1.NewFieldsV1(`{"f:spec":{"f:ports":{` + ports + `}}}`)
	}
	live.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: shipper.FieldOwner, Operation: "Apply", FieldsV1: fields(
			`"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{}},"k:{\"port\":53,\"protocol\":\"UDP\"}":{".":{}}`)},
		{Manager: "kubectl-edit", Operation: "Update", FieldsV1: fields(`"k:{\"port\":81,\"protocol\":\"TCP\"}":{".":{}}`)},
	})
	port := func(number int64, protocol string) map[string]any {
		return map[string]any{"port": number, "protocol": protocol}
	}
	got := applied(live, []any{port(80, "TCP"), port(81, "TCP"), port(53, "UDP"), port(53, "TCP")})
	if diff := cmp.Diff([]any{port(80, "TCP"), port(53, "UDP")}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMergedPortsAreSaidOnTheService(t *testing.T) {
	object := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{"a": "b"}}, "spec": map[string]any{"ports": []any{}},
		}}
	}
	merged := sharedPorts{
		merged: []any{map[string]any{"port": int64(81)}}, kept: shipper.KeptPorts{Drop: []string{"81/TCP"}, Unname: []string{"80/TCP"}},
	}
	got := object()
	if err := merged.merge(got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{
			"a": "b", "shipper.booking.com/kept-ports": `{"drop":["81/TCP"],"unname":["80/TCP"]}`,
		}},
		"spec": map[string]any{"ports": []any{map[string]any{"port": int64(81)}}},
	}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	alone := object()
	if err := (sharedPorts{merged: merged.merged}).merge(alone); err != nil || !cmp.Equal(alone, object()) {
		t.Errorf("without ports to keep: %v %v", err, alone)
	}
}

func TestPortInPods(t *testing.T) {
	var pods corev1.PodTemplateSpec
	pods.Spec.Containers = []corev1.Container{{}, {Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}}
	for port, want := range map[string]int32{"http": 8080, "9090": 9090, "grpc": 0} {
		if got := portIn(pods, port); got != want {
			t.Errorf("%s leads to %d, want %d", port, got, want)
		}
	}
}

func TestPodsBehindAServiceAreThoseItsSelectorMatches(t *testing.T) {
	made := func(template map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": template}}}
	}
	selector := labels.SelectorFromSet(labels.Set{shipper.BackendLabel("web"): "true"})
	for sentence, tc := range map[string]struct {
		object *unstructured.Unstructured
		want   bool
	}{
		"of a workload": {
			made(map[string]any{"metadata": map[string]any{"labels": map[string]any{shipper.BackendLabel("web"): "true", "a": "b"}}}), true,
		},
		"made for another Service": {
			made(map[string]any{"metadata": map[string]any{"labels": map[string]any{shipper.BackendLabel("all"): "true"}}}), false,
		},
		"without labels":      {made(map[string]any{}), false},
		"that cannot be read": {made(map[string]any{"metadata": "x"}), false},
	} {
		if _, got := behind(tc.object, selector); got != tc.want {
			t.Errorf("%s: %t", sentence, got)
		}
	}
}

func TestTargetPortsAreAlikeInThePodsOfBoth(t *testing.T) {
	named := func(number int32) []corev1.PodTemplateSpec {
		var pods corev1.PodTemplateSpec
		pods.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: number}}}}
		return []corev1.PodTemplateSpec{pods}
	}
	unnamed := []corev1.PodTemplateSpec{{}}
	for sentence, tc := range map[string]struct {
		others, own []corev1.PodTemplateSpec
		want        bool
	}{
		"the name means the number in both":       {named(8080), named(8080), true},
		"in the newest it means another":          {named(8080), named(9090), false},
		"in the incumbent it means another":       {named(9090), named(8080), false},
		"the incumbent has no port of the name":   {unnamed, named(8080), false},
		"it is not known what the incumbent's do": {nil, named(8080), false},
	} {
		if got := alikeIn(tc.others, tc.own)("8080", "http"); got != tc.want {
			t.Errorf("%s: %t", sentence, got)
		}
	}
}

func TestAServiceDoesNotTurnAwayFromPodsThatServe(t *testing.T) {
	service := func(use string, selector ...string) *unstructured.Unstructured {
		labels := map[string]any{}
		if use != "" {
			labels[shipper.LBLabel] = use
		}
		by := map[string]any{}
		for _, key := range selector {
			by[key] = "x"
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"labels": labels}, "spec": map[string]any{"selector": by},
		}}
	}
	const production = shipper.LBForProduction
	for sentence, tc := range map[string]struct {
		live, object *unstructured.Unstructured
		want         bool
	}{
		"both move traffic":              {service(production, "a"), service(production, "b"), false},
		"it would select no Deployment":  {service(production, "a"), service("", "b"), true},
		"it selected Pods in place":      {service("", "a"), service(production, "a"), true},
		"it selected nothing":            {service(""), service(production, "a"), false},
		"the same Pods in place":         {service("", "a"), service("", "a"), false},
		"more Pods in place":             {service("", "a", "b"), service("", "a"), false},
		"a label more, of Pods in place": {service("", "a"), service("", "a", "b"), true},
	} {
		if got := turned(tc.live, tc.object); (got != "") != tc.want {
			t.Errorf("%s: %q", sentence, got)
		}
	}
}
