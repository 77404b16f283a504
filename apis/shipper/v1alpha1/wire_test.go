// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"
)

// TestWireLaw checks our kinds against the wire format of the original in both directions: objects of its clients decode here
// with no field unknown or lost, and its clients read the same values from ours. 200 random objects of each kind.
func TestWireLaw(t *testing.T) {
	for name, kind := range map[string]struct{ original, ours func() any }{
		"Application": {
			func() any { return &originalApplication{} }, func() any { return &Application{} }},
		"Release": {
			func() any { return &originalRelease{} }, func() any { return &Release{} }},
		"InstallationTarget": {
			func() any { return &originalInstallationTarget{} }, func() any { return &InstallationTarget{} }},
		"CapacityTarget": {
			func() any { return &originalCapacityTarget{} }, func() any { return &CapacityTarget{} }},
		"TrafficTarget": {
			func() any { return &originalTrafficTarget{} }, func() any { return &TrafficTarget{} }},
		"Cluster": {
			func() any { return &originalCluster{} }, func() any { return &Cluster{} }},
		"RolloutBlock": {
			func() any { return &originalRolloutBlock{} }, func() any { return &RolloutBlock{} }},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range int64(200) {
				original := kind.original()
				filler(seed).Fill(original)
				wire := encode(t, original)

				ours := kind.ours()
				decodeStrictly(t, wire, ours)

				back := kind.original()
				decode(t, encode(t, ours), back)
				if diff := cmp.Diff(string(wire), string(encode(t, back))); diff != "" {
					t.Fatalf("seed %d: the original reads something else than it wrote (-wrote +read):\n%s", seed, diff)
				}
			}
		})
	}
}

// TestWireKeepsValuesApart checks that a copy of an object shares no values with it.
func TestWireKeepsValuesApart(t *testing.T) {
	values := ChartValues{"image": map[string]any{"tags": []any{"a", "b"}}}
	app := &Application{Spec: ApplicationSpec{Template: ReleaseEnvironment{Values: &values}}}
	copied := app.DeepCopy()
	values["image"].(map[string]any)["tags"].([]any)[0] = "changed"

	want := ChartValues{"image": map[string]any{"tags": []any{"a", "b"}}}
	if diff := cmp.Diff(want, *copied.Spec.Template.Values); diff != "" {
		t.Errorf("the copy changed with its original (-want +got):\n%s", diff)
	}
}

// filler fills with values that JSON can carry: no free-form interfaces, times to the second.
func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.2).NumElements(1, 3).Funcs(
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			m.Name = c.String(8)
		},
		func(t *metav1.Time, c randfill.Continue) {
			*t = metav1.Unix(int64(c.Uint32()), 0)
		},
		func(v *map[string]any, c randfill.Continue) {
			*v = map[string]any{"s": c.String(4), "n": float64(c.Uint32()), "l": []any{true, nil}, "m": map[string]any{"k": "v"}}
		},
	)
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("encoding %T: %v", v, err)
	}
	return b
}

func decode(t *testing.T, b []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("decoding %T: %v", v, err)
	}
}

func decodeStrictly(t *testing.T, b []byte, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatalf("decoding %T: %v", v, err)
	}
}
