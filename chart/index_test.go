// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// versions lists what an index has of a chart.
func versions(ix *index, chart string) []string {
	var names []string
	for _, e := range ix.charts[chart] {
		names = append(names, e.version)
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
			data:    "entries:\n  a:\n" + strings.Repeat("  - version: 1.0.0\n", maxEntries+1),
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
			ix, err := new(parser).parse([]byte(test.data))
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
	ix, err := new(parser).parse([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	e := ix.charts["a"][0]
	if diff := cmp.Diff([]any{"ab12", []string{"x", "https://y"}}, []any{e.digest, e.urls}); diff != "" {
		t.Error(diff)
	}
	if ix.size < 2*entryOverhead {
		t.Errorf("size %d", ix.size)
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

// FuzzScanIndex holds the scanner to the general parser: what both understand, both understand alike.
func FuzzScanIndex(f *testing.F) {
	f.Add("apiVersion: v1\nentries:\n  a:\n  - version: 1.0.0\n    urls:\n    - x\n    digest: ab\n  b:\n  - name: b\n    version: 2\n")
	f.Add("entries:\n  a:\n  - keywords:\n    - b\n    maintainers:\n    - name: x\n      version: 3\n    version: '1'\n")
	f.Add("entries:\n  a:\n    - description: |\n        text\n      version: \"1\"\ngenerated: x\n")
	f.Fuzz(func(t *testing.T, data string) {
		scanned, ok := scanIndex([]byte(data))
		if !ok {
			return
		}
		read, err := decodeYAML([]byte(data))
		if err != nil {
			return // the scanner may be more lenient than YAML is
		}
		if got, want := fmt.Sprint(known(scanned)), fmt.Sprint(known(read.Entries)); got != want {
			t.Errorf("scanned %s\nparsed  %s\nfrom\n%s", got, want, data)
		}
	})
}

// known drops what makes no difference to an index.
func known(entries map[string][]listing) map[string][]entry {
	charts := map[string][]entry{}
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
