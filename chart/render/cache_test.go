// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"shipper.dev/shipper/chart"
)

func TestRenderTurnsPanicsIntoErrors(t *testing.T) {
	c := &Chart{helm: &helmchart.Chart{Metadata: &helmchart.Metadata{Name: "x", Version: "1"}, Templates: []*helmchart.File{nil}},
		renders: NewCache(1, 0)}
	c.helm.AddDependency(&helmchart.Chart{}) // without metadata, which the loader never lets pass
	_, err := c.Render(t.Context(), nil, Target{})
	got, ok := errors.AsType[*chart.Error](err)
	if !ok || !strings.HasPrefix(got.Message, `chart "x" 1: it cannot be rendered: runtime error: invalid memory address`) || got.Retry {
		t.Errorf("got %v", err)
	}
}

// TestRenderKeysDiffer compares each with each: templates can distinguish all of these values.
func TestRenderKeysDiffer(t *testing.T) {
	c, same := &Chart{digest: "d"}, map[[sha256.Size]byte]string{}
	for name, value := range map[string]any{
		"a whole number": int64(1), "another number": float64(1), "a text": "1", "a number as text": json.Number("1"), "true": true,
		"null": nil, "an empty map": map[string]any{}, "no map": map[string]any(nil), "an empty list": []any{}, "no list": []any(nil),
		"a map":                 map[string]any{"a": "b", "c": nil},
		"a map in a map":        map[string]any{"a": map[string]any{"b": "c"}},
		"a list":                []any{"a", "b"},
		"a list of one":         []any{"a b"},
		"a list in a list":      []any{[]any{"a"}, "b"},
		"one that is spelt out": `"a" string "b" `,
	} {
		key := c.renderKey(map[string]any{"value": value}, Target{})
		if other, known := same[key]; known {
			t.Errorf("%s and %s have one key", name, other)
		}
		same[key] = name
	}
}

// TestSizeOfCachedCharts measures: a chart that renders to thousands of small maps takes no more memory than is counted.
func TestSizeOfCachedCharts(t *testing.T) {
	for name, leaf := range map[string]func() any{
		"nothing":      func() any { return nil },
		"texts":        func() any { return strings.Repeat("x", 20) },
		"empty maps":   func() any { return map[string]any{} },
		"small maps":   func() any { return map[string]any{"a": int64(1)} },
		"nested lists": func() any { return []any{[]any{[]any{}}} },
		"nested maps":  func() any { return map[string]any{"a": map[string]any{"a": map[string]any{"a": map[string]any{}}}} },
		"maps that grew": func() any {
			grown := map[string]any{}
			for i := range 9 {
				grown[strconv.Itoa(i)] = nil
			}
			return grown
		},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.GC() // what pools hold goes with the second; what other tests left must weigh little beside the list
			runtime.ReadMemStats(&before)
			list := make([]any, 100_000)
			for i := range list {
				list[i] = leaf()
			}
			m := Manifest{Objects: []unstructured.Unstructured{{Object: map[string]any{"list": list}}}}
			runtime.GC()
			runtime.ReadMemStats(&after)
			taken, counted := float64(after.HeapAlloc)-float64(before.HeapAlloc), float64(m.size())
			if ratio := taken / counted; ratio > 1.3 || ratio < 0.4 {
				t.Errorf("%.0f bytes are taken, and %.0f counted: %.1f times as many", taken, counted, ratio)
			}
			runtime.KeepAlive(m)
		})
	}
}
