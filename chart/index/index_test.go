// SPDX-License-Identifier: Apache-2.0

package index

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// versions lists what an index has of a chart.
func versions(ix *Index, chart string) []string {
	var names []string
	for _, e := range ix.charts[chart] {
		names = append(names, e.Version)
	}
	return names
}

func TestParseIndex(t *testing.T) {
	const canonical = `apiVersion: v1
entries:
  nginx:
  - annotations:
      images: |
        - name: x
        	tabbed

        version: 9.9.9
# a comment
    apiVersion: v2
    created: "2024-01-02T03:04:05Z"
    dependencies:
    - name: common
      version: 2.x.x
    description: two lines
      of text
    digest: 0000000000000000000000000000000000000000000000000000000000000012
    keywords:
    - version
    urls:
    - https://charts.example.com/nginx-1.10.tgz
    - nginx-1.10.tgz
    version: 1.10.0
  - version: '1.9.0'
    digest: sha256:AB
    urls:
      - "nginx-1.9.tgz"
  - version: banana
  - version: v2.0.0-rc.1
  - version: 1.10.0+b2
  redis:
  -   name: redis
      version: 7
generated: "2024-01-02T03:04:05Z"
publicKeys:
- abc
serverInfo:
  entries:
    no: 1
`
	tests := map[string]struct {
		data    string
		fast    bool
		want    map[string][]string
		failure string
	}{
		"helm's layout is scanned": {
			data: canonical, fast: true,
			want: map[string][]string{"nginx": {"v2.0.0-rc.1", "1.10.0+b2", "1.10.0", "1.9.0"}, "redis": {"7"}},
		},
		"indented lists and carriage returns are scanned": {
			data: "entries:\r\n    a:\r\n      - urls:\r\n          - x\r\n        version: 1.0.0\r\n", fast: true,
			want: map[string][]string{"a": {"1.0.0"}},
		},
		"a document mark and comments are scanned": {
			data: "---\n# hello\napiVersion: v1\nentries:\n  a:\n  - version: 1.0.0\n    # note\n    digest: ~\n", fast: true,
			want: map[string][]string{"a": {"1.0.0"}},
		},
		"JSON": {
			data: ` {"apiVersion":"v1","entries":{"a":[{"version":"1.0.0","urls":["x"]},{"version":"1.1.0"}]}}`,
			want: map[string][]string{"a": {"1.1.0", "1.0.0"}},
		},
		"YAML in flow style": {
			data: "apiVersion: v1\nentries: {a: [{version: 1.0.0, urls: [x]}]}",
			want: map[string][]string{"a": {"1.0.0"}},
		},
		"quotes, anchors and folded values are left to the general parser": {
			data: "apiVersion: v1\nentries:\n  \"a\":\n  - &x\n    version: >-\n      1.0.0\n  b:\n  - *x\n",
			want: map[string][]string{"a": {"1.0.0"}, "b": {"1.0.0"}},
		},
		"an index without entries is empty": {
			data: "apiVersion: v1\nentries: {}\n", want: map[string][]string{},
		},
		"a chart without versions is left out": {
			data: "apiVersion: v1\nentries:\n  a: []\n  b:\n", want: map[string][]string{},
		},
		"an empty file":        {data: " \n", failure: "is an empty file, not a chart index"},
		"a page of HTML":       {data: "\n<!DOCTYPE html><html>", failure: "is a page of HTML or XML, not a chart index"},
		"a secret text":        {data: "password", failure: "is not a chart index"},
		"a secret in a string": {data: "entries: password", failure: "is not a chart index"},
		"broken YAML":          {data: "a: b: c", failure: "is not a chart index: yaml: mapping values are not allowed in this context"},
		"other YAML":           {data: "a: b", failure: "is not a chart index: it has neither apiVersion nor entries"},
		"too many versions": {
			data:    "entries:\n  a:\n" + strings.Repeat("  - version: 1.0.0\n", MaxEntries+1),
			fast:    true,
			failure: "lists 250001 versions, more than the 250000 that are accepted",
		},
		"too long for the general parser": {
			data:    "entries: {}\n" + strings.Repeat("# comment\n", maxFreeform/10+1),
			failure: "has 16 MiB and is not laid out as `helm repo index` writes it; such an index may have at most 16 MiB",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, fast := scanIndex([]byte(test.data)); fast != test.fast {
				t.Errorf("scanned: %v, want %v", fast, test.fast)
			}
			ix, err := NewParser().Parse("charts.example.com", []byte(test.data))
			if test.failure != "" {
				if err == nil || err.Error() != test.failure {
					t.Fatalf("got error %v, want %q", err, test.failure)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := map[string][]string{}
			for chart := range ix.charts {
				got[chart] = versions(ix, chart)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseIndexKeepsDigestsAndURLs(t *testing.T) {
	const data = "entries:\n  a:\n  - digest: sha256:AB12\n    urls:\n    - x\n    - https://y\n    version: 1.0.0\n"
	ix, err := NewParser().Parse("charts.example.com", []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	e := ix.charts["a"][0]
	if diff := cmp.Diff([]any{"ab12", []string{"x", "https://y"}}, []any{e.Digest, e.URLs}); diff != "" {
		t.Error(diff)
	}
	if ix.Size < 2*entryOverhead {
		t.Errorf("size %d", ix.Size)
	}
}

// TestScanIndexGivesUp lists what the scanner must not guess about.
func TestScanIndexGivesUp(t *testing.T) {
	head := "entries:\n  a:\n  - version: 1.0.0\n"
	tests := map[string]string{
		"no entries":                      "apiVersion: v1\n",
		"entries twice":                   head + "entries:\n  b:\n  - version: 1.0.0\n",
		"a second document":               head + "---\nentries:\n",
		"an end of document":              head + "...\n",
		"a chart twice":                   head + "  a:\n  - version: 2.0.0\n",
		"charts at different depths":      head + " b:\n  - version: 2.0.0\n",
		"a value beside a chart":          "entries:\n  a: {}\n",
		"an item deeper than the others":  head + "   - version: 2.0.0\n",
		"an item that is empty":           head + "  -\n    version: 2.0.0\n",
		"a version that goes on":          head + "      .1\n",
		"a version that is folded":        "entries:\n  a:\n  - version: >-\n      1.0.0\n",
		"a version with an escape":        "entries:\n  a:\n  - version: \"1.0\\u002e0\"\n",
		"a version with a comment":        "entries:\n  a:\n  - version: 1.0.0 # best\n",
		"a version left open":             "entries:\n  a:\n  - version: \"1.0.0\n",
		"a merge":                         head + "    <<: *x\n",
		"a tab":                           "entries:\n\ta:\n",
		"URLs in flow style":              head + "    urls: [x]\n",
		"URLs twice":                      head + "    urls:\n    - x\n    urls:\n    - y\n",
		"a URL that is nothing":           head + "    urls:\n    -\n",
		"something below a URL":           head + "    urls:\n    - x\n      y\n",
		"a field before any version":      "entries:\n  a:\n    version: 1.0.0\n",
		"a chart called nothing":          "entries:\n  ~:\n  - version: 1.0.0\n",
		"a chart called null":             "entries:\n  null:\n  - version: 1.0.0\n",
		"a line that only YAML ends":      "entries:\n  a:\n  - version: 1.0.0\u2028  - version: 2.0.0\n",
		"a carriage return":               "entries:\n  a:\n  - version: 1.0.0\r  - version: 2.0.0\n",
		"a key with blanks":               head + "    my key: 1\n",
		"a list where charts should be":   "entries:\n- a\n",
		"a line that is no key":           "hello\n" + head,
		"a field without a blank behind:": head + "    digest:12\n",
	}
	for name, data := range tests {
		t.Run(name, func(t *testing.T) {
			if got, ok := scanIndex([]byte(data)); ok {
				t.Errorf("understood as %v", got)
			}
		})
	}
}

// FuzzScanIndex holds the scanner to the general parser: of what writers of YAML make of an index, both understand the
// same, if the scanner understands it at all; and whatever else a repository answers does not upset it.
func FuzzScanIndex(f *testing.F) {
	f.Add("nginx", "1.0.0", "https://charts.example.com/nginx-1.0.0.tgz", "A \"web\" server:\n- fast", "entries:\n  a:\n  - version: 1\n")
	f.Add("~", "0", "null", "'", "a: {\nentries:\n")
	f.Add("a.b/c", "=", "- x", "|\n  entries:\n", "entries:\n  a:\n  - keywords:\n    - b\n    version: '1'\n")
	f.Add("1", "2001-01-01", "# x", " \u2028version: 3", "entries:\n  a:\n  - description: |\n        text\n    version: \"1\"\n")
	f.Fuzz(func(t *testing.T, name, version, url, text, raw string) {
		scanIndex([]byte(raw))
		listing := map[string]any{
			"version": version, "digest": url, "urls": []string{url, text}, "description": text,
			"annotations": map[string]string{text: text}, "keywords": []string{text, version}, "deprecated": text == "",
			"maintainers": []map[string]string{{"name": name, "version": text}},
		}
		index := map[string]any{
			"apiVersion": "v1", "generated": text,
			"entries": map[string]any{name: []any{listing, map[string]any{"version": "0.1.0", "urls": []string{}}}},
		}
		for writer, write := range map[string]func(any) ([]byte, error){
			"sigs.k8s.io/yaml": sigsyaml.Marshal, "yaml.v3": yaml.Marshal, "json": json.Marshal,
		} {
			data, err := write(index)
			if err != nil {
				continue // not every text can be written
			}
			scanned, ok := scanIndex(data)
			if !ok {
				continue
			}
			read, err := decodeYAML(data)
			if err != nil {
				continue // nor can everything that is written be read again
			}
			if got, want := fmt.Sprint(known(scanned)), fmt.Sprint(known(read.Entries)); got != want {
				t.Errorf("scanned %s\nparsed  %s\nfrom, as written by %s,\n%s", got, want, writer, data)
			}
		}
	})
}

// known drops what makes no difference to an index.
func known(entries map[string][]listing) map[string][]Entry {
	charts := map[string][]Entry{}
	for name, listings := range entries {
		kept := compact(listings)
		for i := range kept {
			kept[i].parsed = nil
		}
		if len(kept) > 0 {
			charts[name] = kept
		}
	}
	return charts
}

func TestBuildsOfOneVersionAreInTheirNaturalOrder(t *testing.T) {
	ordered := []string{"", "10", "b", "b01", "b1", "b1.2", "b1.10", "b9", "b10", "b10.a", "c"}
	shuffled := make([]listing, 0, len(ordered))
	for _, build := range slices.Backward(ordered[1:]) {
		shuffled = append(shuffled, listing{Version: "1.2.3+" + build})
	}
	shuffled = append(shuffled[5:], append([]listing{{Version: "1.2.3"}}, shuffled[:5]...)...)
	var got []string
	for _, e := range slices.Backward(compact(shuffled)) {
		got = append(got, e.parsed.Metadata())
	}
	if diff := cmp.Diff(ordered, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for i, a := range ordered {
		for j, b := range ordered {
			if got, want := compareBuilds(a, b), i-j; got*want < 0 || (got == 0) != (want == 0) {
				t.Errorf("%q and %q: %d", a, b, got)
			}
		}
	}
}
