// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// FuzzSplit splits any objects, given as lines of JSON, into parts of any size: joined in any order, they have the same content.
func FuzzSplit(f *testing.F) {
	f.Add([]byte(`{"kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}}`+"\n"+`{"kind":"Secret","metadata":{"name":"s"}}`),
		40, uint64(1))
	f.Add([]byte(`{"kind":"ConfigMap","data":{"<€\u2028\u0001":"\"\\\n"}}`), 7, uint64(2))
	f.Add([]byte(`{"n":[-0.0,1.0,1e21,1e-7,9223372036854775808,0.1]}`), 1, uint64(3))
	f.Add([]byte(`{}`), 0, uint64(4))
	f.Add([]byte(`{"kind":"Secret","metadata":{"name":"a"}}`+"\n"+`{"kind":"Secret","metadata":{"name":"b"}}`), 50, uint64(5))
	f.Fuzz(func(t *testing.T, content []byte, most int, seed uint64) {
		var objects []unstructured.Unstructured
		for text := range bytes.Lines(content) {
			var o unstructured.Unstructured
			if json.Unmarshal(text, &o.Object) != nil || o.Object == nil {
				return
			}
			objects = append(objects, o)
		}
		parts, err := split(objects, most)
		if err != nil {
			return
		}
		var data [2][]byte
		for _, p := range parts {
			i := 0
			if p.Secret {
				i = 1
			}
			data[i] = append(data[i], p.Data...)
		}
		for i := range data {
			for text := range bytes.Lines(data[i]) {
				var o unstructured.Unstructured
				if err := json.Unmarshal(text, &o.Object); err != nil || (KeyOf(&o).GroupKind() == secret) != (i == 1) {
					t.Errorf("list %d has %q, %v", i, text, err)
				}
			}
		}
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		got, err := Join(parts)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(texts(t, objects), texts(t, got)); diff != "" {
			t.Error(diff)
		}
		if before, after := digest(t, objects), digest(t, got); before != after {
			t.Errorf("the digest is %s, was %s", after, before)
		}
	})
}

// FuzzJoin joins any data: it returns an error and does not end the process.
func FuzzJoin(f *testing.F) {
	f.Add("{}\n", "", 2, 1)
	f.Add("{\"a\":", "1}\n", 1, 2)
	f.Add("null\n", "[]\n", -1, 0)
	f.Fuzz(func(t *testing.T, first, second string, of, number int) {
		_, err := Join([]Part{{Parts: of, Data: first}, {Parts: of, Part: number, Data: second, Secret: true}})
		if err == nil {
			t.Errorf("parts without a digest are accepted")
		}
	})
}

// texts are the canonical lines of objects, sorted by Key.
func texts(t *testing.T, objects []unstructured.Unstructured) []string {
	t.Helper()
	lines, err := canonicalLines(objects)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = string(l.text)
	}
	return out
}
