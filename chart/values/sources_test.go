// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/values"
)

func secretNamed(name string) shipper.ValuesSource {
	return shipper.ValuesSource{SecretKeyRef: &shipper.ValuesKeyRef{Name: name}}
}

func TestValuesOfSourcesAreBeneathOthers(t *testing.T) {
	pinned := values.Pinned{From: []shipper.ValuesSource{
		{ConfigMapKeyRef: &shipper.ValuesKeyRef{Name: "a", Key: "x.yaml"}}, secretNamed("b"), secretNamed("empty"), secretNamed("absent"),
	}}
	base, err := pinned.Merge(values.Held{
		"ConfigMap/a/x.yaml":   []byte("count: 1\nimage: {tag: a, name: a}\ngone: {x: 1}\nlarge: 12345678901\n"),
		"Secret/b/values.yaml": []byte("image: {tag: b}\ngone: null\nlist: [1, 2]\n"), "Secret/empty/values.yaml": []byte("# nothing\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	layers := values.Layers{
		Base: base, Common: &shipper.ChartValues{"image": map[string]any{"name": "c"}},
		PerCluster: []shipper.ValuesFor{{
			Name: "west", Values: &shipper.ChartValues{"count": int64(2)},
			Patch: []shipper.PatchOperation{{"op": "replace", "path": "/list/0", "value": int64(7)}},
		}},
	}
	everywhere := shipper.ChartValues{
		"count": int64(1), "image": map[string]any{"tag": "b", "name": "c"}, "gone": nil, "list": []any{int64(1), int64(2)},
		"large": int64(12345678901),
	}
	west := everywhere.DeepCopy()
	west["count"], west["list"] = int64(2), []any{int64(7), int64(2)}
	for place, want := range map[values.Place]shipper.ChartValues{{Cluster: "east"}: everywhere, {Cluster: "west"}: west} {
		got, err := layers.For(place).At(place)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, *got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", place, diff)
		}
	}
}

func TestDigestsOfSources(t *testing.T) {
	source, plain := secretNamed("b"), shipper.ValuesSource{ConfigMapKeyRef: &shipper.ValuesKeyRef{Name: "b"}}
	of := func(app, content string) string {
		p := values.Pinned{Namespace: "x", App: app, From: []shipper.ValuesSource{source, plain, secretNamed("absent")}}
		digests, err := p.DigestsOf(values.Held{source.String(): []byte(content), plain.String(): []byte("a: 1")})
		if err != nil {
			t.Fatal(err)
		}
		want := "sha256:16c3c6d78678d53d39ab2c7a5a7bc4596567b46a1a57000a2d707334f779b824" // as sha256sum has it
		if digests["ConfigMap/b/values.yaml"] != want || digests["Secret/absent/values.yaml"] != shipper.ValuesAbsent {
			t.Errorf("digests %v", digests)
		}
		return digests[source.String()]
	}
	one := of("web", "a: 1")
	if one != of("web", "a: 1") || one == of("web", "a: 2") || one == of("db", "a: 1") || !strings.HasPrefix(one, "pbkdf2:") {
		t.Errorf("digest %s is not of the content and the Application alone", one)
	}
}
