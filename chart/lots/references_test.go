// SPDX-License-Identifier: Apache-2.0

package lots_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/chart/lots"
)

// byKustomize are objects as kustomize renames them, with its builtin configuration.
func byKustomize(t *testing.T, suffix string, objects []unstructured.Unstructured) map[string]map[string]any {
	t.Helper()
	const folder = "/k/"
	files, names := filesys.MakeFsInMemory(), []string{}
	write := func(name string, content any) {
		raw, err := yaml.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		if err := files.WriteFile(folder+name, raw); err != nil {
			t.Fatal(err)
		}
	}
	for i := range objects {
		names = append(names, fmt.Sprintf("%d.yaml", i))
		write(names[i], objects[i].Object)
	}
	write("kustomization.yaml", map[string]any{"resources": names, "nameSuffix": suffix})
	found, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, folder)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]any{}
	for _, r := range found.Resources() {
		object, err := r.Map()
		if err != nil {
			t.Fatal(err)
		}
		out[r.GetKind()+" "+strings.TrimSuffix(r.GetName(), suffix)] = object
	}
	return out
}

// pods is the spec of the Pods of an object, without imagePullSecrets, as JSON.
func pods(t *testing.T, object map[string]any) string {
	t.Helper()
	pod, _, err := unstructured.NestedFieldNoCopy(object, "spec", "template", "spec")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	var copied map[string]any
	if err := json.Unmarshal(raw, &copied); err != nil {
		t.Fatal(err)
	}
	delete(copied, "imagePullSecrets")
	out, err := json.MarshalIndent(copied, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// fill gives all fields a value: each text is x, each list has one element.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		if _, amount := v.Interface().(resource.Quantity); amount {
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.String:
		v.SetString("x")
	}
}

// TestReferencesAreKustomizes compares the references in a Pod template that has every field of Kubernetes with those that kustomize's
// builtin configuration knows.
func TestReferencesAreKustomizes(t *testing.T) {
	var pod corev1.PodSpec
	fill(reflect.ValueOf(&pod).Elem())
	filled, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod)
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {template: {}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}}
---
{apiVersion: v1, kind: Secret, metadata: {name: x}, data: {a: b}}`)
	if err := unstructured.SetNestedMap(all[0].Object, filled, "spec", "template", "spec"); err != nil {
		t.Fatal(err)
	}
	before := all[0].DeepCopy()
	table := lots.Of(all, release)
	want := pods(t, byKustomize(t, lots.Suffix(release), all)["Job x"])
	got := pods(t, table.Entries[0].Object.Object)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-kustomize +ours:\n%s", diff)
	}
	if n := strings.Count(got, `"x-6f19aa85-0"`); n != 12 {
		t.Errorf("%d references are rewritten, want 12", n)
	}
	if diff := cmp.Diff(before, &all[0]); diff != "" {
		t.Errorf("the rendered object changed: -want +got:\n%s", diff)
	}
}

func TestCopies(t *testing.T) {
	const uses = `{containers: [{envFrom: [{secretRef: {name: conf}}, {configMapRef: {name: conf}}]}], imagePullSecrets: [{name: conf}]}`
	const metadata = "metadata: {name: conf, namespace: shop, labels: {app: web}, annotations: {helm.sh/resource-policy: keep}}"
	tests := map[string]struct {
		pod, configuration string
		want               string
	}{
		"a ConfigMap": {
			uses, "{apiVersion: v1, kind: ConfigMap, " + metadata + ", data: {a: b}, binaryData: {c: ZA==}}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: conf-6f19aa85-0, namespace: shop}, data: {a: b}, binaryData: {c: ZA==}}",
		},
		"a Secret": {
			uses, "{apiVersion: v1, kind: Secret, type: kubernetes.io/tls, immutable: true, " + metadata + ", stringData: {a: b}}",
			"{apiVersion: v1, kind: Secret, type: kubernetes.io/tls, immutable: true, metadata: {name: conf-6f19aa85-0, namespace: shop}, " +
				"stringData: {a: b}}",
		},
		"an empty Secret, which another process fills": {uses, "{apiVersion: v1, kind: Secret, metadata: {name: conf}, data: {}}", ""},
		"a token, which Kubernetes fills": {
			uses, "{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: conf}, data: {extra: eA==}}", "",
		},
		"a ConfigMap of another group": {uses, "{apiVersion: example.com/v1, kind: ConfigMap, metadata: {name: conf}, data: {a: b}}", ""},
		"one that no Pod uses":         {"{}", "{apiVersion: v1, kind: ConfigMap, metadata: {name: conf}, data: {a: b}}", ""},
		"one to pull images with": {
			"{imagePullSecrets: [{name: conf}]}", "{apiVersion: v1, kind: Secret, metadata: {name: conf}, data: {a: Yg==}}", "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			table := lots.Of(objects(t, tc.configuration+"\n---\n"+web("{}", tc.pod)), release)
			e := table.Entries[0]
			if e.Lot != lots.Shared || e.Object.GetName() != "conf" {
				t.Errorf("%s is %s, as %s: the name of the chart has to stay", &e, e.Lot, e.Object.GetName())
			}
			var want *unstructured.Unstructured
			name := "conf"
			if tc.want != "" {
				want, name = &objects(t, tc.want)[0], "conf-6f19aa85-0"
			}
			if diff := cmp.Diff(want, e.Copy); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			used := pods(t, table.Entries[1].Object.Object)
			if kind := e.Object.GetKind(); strings.Contains(tc.pod, "secretRef") && e.Object.GetAPIVersion() == "v1" {
				ref := map[string]string{"ConfigMap": "configMapRef", "Secret": "secretRef"}[kind]
				if !strings.Contains(strings.Join(strings.Fields(used), ""), fmt.Sprintf(`%q:{"name":%q}`, ref, name)) {
					t.Errorf("Pods do not use %s %s: %s", kind, name, used)
				}
			}
		})
	}
}

func TestUses(t *testing.T) {
	pod := objects(t, `{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {
		volumes: [{projected: {sources: [{secret: {name: a}}]}}, {configMap: {name: b}}], imagePullSecrets: [{name: c}],
		containers: [{env: [{valueFrom: {secretKeyRef: {name: d}}}]}]}}`)[0]
	var got []string
	for _, kind := range []string{"ConfigMap", "Secret", "Service"} {
		for _, name := range []string{"a", "b", "c", "d"} {
			if lots.Uses(&pod, kind, name) {
				got = append(got, kind+" "+name)
			}
		}
	}
	if diff := cmp.Diff([]string{"ConfigMap b", "Secret a", "Secret d"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPodsInPlaceKeepCopiesOfEqualContent: with other names, each Release would replace their Pods.
func TestPodsInPlaceKeepCopiesOfEqualContent(t *testing.T) {
	const pod = "{containers: [{envFrom: [{configMapRef: {name: conf}}, {secretRef: {name: conf}}, {secretRef: {name: conf}}]}]}"
	chart := func(conf, password string) []unstructured.Unstructured {
		return objects(t, web("{type: Recreate}", pod)+
			"\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: conf, labels: {version: "+conf+"}}, data: {a: "+conf+"}}"+
			"\n---\n{apiVersion: v1, kind: Secret, metadata: {name: conf}, stringData: {a: "+password+"}}")
	}
	given := chart("one", "one")
	first := lots.Of(given, release)
	written := first.Objects()
	earlier := pointers(given) // as versions of Shipper wrote them that made no copies for Pods in place
	tests := map[string]struct {
		of            []unstructured.Unstructured
		inUse         lots.InUse
		conf, secret  string
		copies        int
		sameTemplates bool
	}{
		"nothing is known":    {given, nil, "conf-6f19aa85-1", "conf-6f19aa85-1", 2, false},
		"all is the same":     {given, lots.InUseOf(pointers(given), written), "conf-6f19aa85-0", "conf-6f19aa85-0", 2, true},
		"one is another":      {chart("one", "two"), lots.InUseOf(pointers(given), written), "conf-6f19aa85-0", "conf-6f19aa85-1", 2, false},
		"there is no copy":    {given, lots.InUseOf(earlier, earlier), "conf", "conf", 0, false},
		"all is another":      {chart("two", "two"), lots.InUseOf(earlier, earlier), "conf-6f19aa85-1", "conf-6f19aa85-1", 2, false},
		"what is used is not": {given, lots.InUseOf(pointers(given), written[:1]), "conf-6f19aa85-1", "conf-6f19aa85-1", 2, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			next := lots.Of(tc.of, lots.Release{App: "shop", Name: "shop-6f19aa85-1", InUse: tc.inUse})
			used := strings.Join(strings.Fields(pods(t, next.Entries[0].Object.Object)), "")
			for kind, name := range map[string]string{"configMapRef": tc.conf, "secretRef": tc.secret} {
				if !strings.Contains(used, fmt.Sprintf(`%q:{"name":%q}`, kind, name)) {
					t.Errorf("%s is not %q: %s", kind, name, used)
				}
			}
			if n := len(next.Objects()) - len(next.Entries); n != tc.copies {
				t.Errorf("%d copies, want %d", n, tc.copies)
			}
			if same := cmp.Equal(first.Entries[0].Object, next.Entries[0].Object); same != tc.sameTemplates {
				t.Errorf("the workload is the same: %t", same)
			}
			if e := next.Entries[1]; e.Lot != lots.Shared || e.Object.GetName() != "conf" || !slices.Equal(e.UsedBy, []string{"Deployment web"}) {
				t.Errorf("%+v", e)
			}
		})
	}
}
