// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte("apiVersion: v1\nkind: Thing\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u
}

func wrote(manager, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields),
		Time: &metav1.Time{Time: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)},
	}
}

func TestDifferencesAreToldFieldByField(t *testing.T) {
	for sentence, tc := range map[string]struct {
		want, have string
		managed    []metav1.ManagedFieldsEntry
		told       []string
	}{
		"the same": {want: "spec: {a: 1}", have: "spec: {a: 1}"},
		"what the API server and status say": {
			want: "metadata: {generation: 2, resourceVersion: '7'}", have: "metadata: {generation: 1}\nstatus: {ready: 1}",
		},
		"a value, something that is gone, something that came": {
			want: "spec: {a: 1, b: x}\nmetadata: {labels: {l: v}}", have: "spec: {a: 2, c: {d: [1]}}",
			managed: []metav1.ManagedFieldsEntry{
				wrote("kubectl-edit", "", `{"f:spec":{"f:a":{},"f:c":{"f:d":{}}}}`), wrote(shipper.FieldOwner, "", `{"f:spec":{"f:a":{}}}`),
			},
			told: []string{
				`metadata.labels: {"l":"v"} -> `, `spec.a: 1 -> 2 by kubectl-edit 04:05:06`, `spec.b: "x" -> `,
				`spec.c:  -> {"d":[1]} by kubectl-edit 04:05:06`,
			},
		},
		"elements of lists by their names, in any order": {
			want: "spec: {containers: [{name: a, image: x}, {name: b, image: w}]}", have: "spec: {containers: [{name: b, image: z}, {name: c}]}",
			managed: []metav1.ManagedFieldsEntry{wrote("someone", "", `{"f:spec":{"f:containers":{"k:{\"name\":\"b\"}":{".":{},"f:image":{}}}}}`)},
			told: []string{
				`spec.containers[name=a]: {"image":"x","name":"a"} -> `, `spec.containers[name=b].image: "w" -> "z" by someone 04:05:06`,
				`spec.containers[name=c]:  -> {"name":"c"}`,
			},
		},
		"elements that have names, and are identified by something else": {
			want: "spec: {ports: [{name: a, port: 1}]}", have: "spec: {ports: [{name: a, port: 2}]}",
			managed: []metav1.ManagedFieldsEntry{
				wrote("someone", "", `{"f:spec":{"f:ports":{"k:{\"port\":2,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}`),
			},
			told: []string{`spec.ports[name=a].port: 1 -> 2 by someone 04:05:06`},
		},
		"elements without names": {
			want: "spec: {args: [a, b], ports: [{port: 1}]}", have: "spec: {args: [a, c], ports: [{port: 1}, {port: 2}]}",
			told: []string{`spec.args[1]: "b" -> "c"`, `spec.ports: [{"port":1}] -> [{"port":1},{"port":2}]`},
		},
		"names with dots": {
			want: "metadata: {annotations: {example.com/a: x}}", have: "metadata: {annotations: {example.com/a: w}}",
			told: []string{`metadata.annotations["example.com/a"]: "x" -> "w"`},
		},
		"long values": {
			want: "data: {a: " + strings.Repeat("x", 500) + "}", have: "data: {a: w}",
			told: []string{`data.a: "` + strings.Repeat("x", 124) + `… -> "w"`},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got []string
			list := Differences(parsed(t, tc.want), parsed(t, tc.have))
			for _, f := range Fields(shipper.DriftedField{APIVersion: "v1", Kind: "Thing", Name: "x"}, list, tc.managed, false) {
				text := f.Field + ": " + f.Want + " -> " + f.Have
				if f.Manager != "" {
					text += " by " + f.Manager + f.Since.UTC().Format(" 15:04:05")
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.told, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhatOthersWriteAfterTheReadIsNoDrift(t *testing.T) {
	released := parsed(t, "metadata: {annotations: {ours: x, dropped: y}}")
	dryRun := parsed(t, "metadata: {annotations: {ours: x, dropped: y, revision: '2', new: z}}")
	live := parsed(t, "metadata: {annotations: {ours: w, revision: '1', former: v}}")
	var got []string
	for _, d := range WithoutLaterWrites(Differences(dryRun, live), released) {
		got = append(got, d.Text)
	}
	want := []string{"metadata.annotations.dropped", "metadata.annotations.former", "metadata.annotations.ours"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestValuesOfSecretsAreNotTold(t *testing.T) {
	list := Differences(parsed(t, "data: {password: b2xk}"), parsed(t, "data: {password: bmV3}"))
	want := []shipper.DriftedField{{APIVersion: "v1", Kind: "Secret", Name: "x", Field: "data.password", Hidden: true}}
	if diff := cmp.Diff(want, Fields(shipper.DriftedField{APIVersion: "v1", Kind: "Secret", Name: "x"}, list, nil, false)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatIsScaledIsNotTheChartsAnyMore(t *testing.T) {
	object := parsed(t, "metadata: {annotations: {a: b}}\nspec: {replicas: 3, template: {x: y}}")
	WithoutScaled(object, []metav1.ManagedFieldsEntry{
		wrote("someone", "", `{"f:spec":{"f:template":{"f:x":{}}}}`),
		wrote("kube-controller-manager", "scale", `{"f:spec":{"f:replicas":{}}}`),
		wrote("kube-controller-manager", "status", `{"f:metadata":{"f:annotations":{"f:a":{}}},"f:status":{"f:ready":{}}}`),
	})
	if diff := cmp.Diff(parsed(t, "metadata: {annotations: {a: b}}\nspec: {template: {x: y}}").Object, object.Object); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
