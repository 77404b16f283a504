// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// endless answers every request with bytes that do not end.
type endless struct{}

func (endless) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, ContentLength: -1, Body: endless{}}, nil
}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
func (endless) Close() error               { return nil }

func TestDownloadsAreBoundedOneAndAll(t *testing.T) {
	u, err := parseRepository("https://example.com/x")
	if err != nil {
		t.Fatal(err)
	}
	f := newFetcher(Policy{}, endless{})
	_, _, err = f.get(t.Context(), f.client, u, validators{}, 3<<20, nil)
	if err == nil || err.Error() != "is larger than the 3 MiB that are accepted" {
		t.Errorf("one that is too large gives %v", err)
	}
	if got := f.inFlight.Load(); got != 0 {
		t.Errorf("%d bytes are still counted", got)
	}
	f.inFlight.Store(maxInFlight - 1)
	_, _, err = f.get(t.Context(), f.client, u, validators{}, 3<<20, nil)
	if !errors.Is(err, errBusy) {
		t.Errorf("one too many gives %v", err)
	}
	if got := f.inFlight.Load(); got != maxInFlight-1 {
		t.Errorf("%d bytes are counted", got)
	}
}

func TestGuardTurnsPanicsIntoErrors(t *testing.T) {
	_, err := guard(func() (int, error) { panic("oh " + strings.Repeat("x", 300)) })
	failure, ok := errors.AsType[*unusable](err)
	if !ok || !strings.HasPrefix(failure.Error(), "cannot be read: oh xxx") || len(failure.Error()) > 250 {
		t.Errorf("got %v", err)
	}
}

func TestRenderTurnsPanicsIntoErrors(t *testing.T) {
	c := &Chart{helm: &helmchart.Chart{Metadata: &helmchart.Metadata{Name: "x", Version: "1"}, Templates: []*helmchart.File{nil}},
		renders: newRenderCache(1, 0)}
	c.helm.AddDependency(&helmchart.Chart{}) // without metadata, which the loader never lets pass
	_, err := c.Render(t.Context(), nil, Target{})
	got, ok := errors.AsType[*Error](err)
	if !ok || !strings.HasPrefix(got.Message, `chart "x" 1: it cannot be rendered: runtime error: invalid memory address`) || got.Retry {
		t.Errorf("got %v", err)
	}
}

func TestOneSlip(t *testing.T) {
	tests := map[[2]string]bool{
		{"nginx", "Nginx"}: true, {"nginx", "ngnix"}: true, {"nginx", "ngin"}: true, {"ngnx", "nginx"}: true, {"nginx", "nginy"}: true,
		{"nginx", "php"}: false, {"nginx", "apache"}: false, {"ab", "xy"}: false, {"nginx", "nginxes"}: false, {"redis", "radix"}: false,
	}
	for names, want := range tests {
		if got := oneSlip(names[0], names[1]); got != want {
			t.Errorf("%v: %v", names, got)
		}
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

func TestLRU(t *testing.T) {
	l := newLRU[string, int](10)
	var forgotten []string
	for i, key := range []string{"a", "b", "c"} {
		forgotten = append(forgotten, l.put(key, i, 3)...)
	}
	if _, ok := l.get("a"); !ok {
		t.Error("a is not kept")
	}
	forgotten = append(forgotten, l.put("d", 3, 3)...) // b is the least recently used
	forgotten = append(forgotten, l.put("e", 4, 11)...)
	forgotten = append(forgotten, l.put("a", 5, 10)...)
	l.drop("nothing")
	if diff := cmp.Diff([]string{"b", "e", "c", "d"}, forgotten); diff != "" {
		t.Error(diff)
	}
	if got, ok := l.get("a"); !ok || got != 5 || l.cost != 10 {
		t.Errorf("a is %d, %v; all cost %d", got, ok, l.cost)
	}
}

func TestAsErrorKeepsWhatItIsGiven(t *testing.T) {
	if got := asError(context.Canceled); !got.Retry || !errors.Is(got, context.Canceled) {
		t.Errorf("got %+v", got)
	}
}

func TestNetworkErrorsAreTheSameEachTime(t *testing.T) {
	at := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 443}
	tests := map[string]error{
		"read 10.0.0.1:443: reset": &url.Error{Op: "Get", URL: "http://me:secret@x", Err: &net.OpError{
			Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: 4711}, Addr: at, Err: errors.New("reset"),
		}},
		"looking up x: no such host": &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{
			Name: "x", Server: "10.0.0.2:53", Err: "no such host",
		}},
		"no whole answer in time: context deadline exceeded": &net.OpError{Op: "read", Addr: at, Err: context.DeadlineExceeded},
		"other": errors.New("other"),
	}
	for want, err := range tests {
		if got := tidy(err).Error(); got != want {
			t.Errorf("%v prints as %q, want %q", err, got, want)
		}
	}
}
