// SPDX-License-Identifier: Apache-2.0

package block

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestParseOverrides(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation string
		want       []types.NamespacedName
		wantErr    string
	}{
		"an empty annotation overrides nothing": {annotation: ""},
		"one block": {
			annotation: "global/dns", want: []types.NamespacedName{nn("global", "dns")},
		},
		"blanks, line breaks, empty entries and repetitions do not matter": {
			annotation: " global/dns ,\n frontend/demo,, global/dns,",
			want:       []types.NamespacedName{nn("frontend", "demo"), nn("global", "dns")},
		},
		"names sort by namespace first": {
			annotation: "b/a,a/z,a-b/c",
			want:       []types.NamespacedName{nn("a", "z"), nn("a-b", "c"), nn("b", "a")},
		},
		"names may have dots": {annotation: "a/b.c", want: []types.NamespacedName{nn("a", "b.c")}},
		"a name alone is bad": {annotation: "global/dns,dns", wantErr: `"dns" is not namespace/name of a RolloutBlock`},
		"an empty namespace is bad": {
			annotation: "/dns", wantErr: `"/dns": "" cannot be the name of a namespace`,
		},
		"an empty name is bad": {
			annotation: "global/", wantErr: `"global/": "" cannot be the name of a RolloutBlock`,
		},
		"a second slash is bad": {
			annotation: "a/b/c", wantErr: `"a/b/c": "b/c" cannot be the name of a RolloutBlock`,
		},
		"upper case is bad": {
			annotation: "Global/dns", wantErr: `"Global/dns": "Global" cannot be the name of a namespace`,
		},
		"blanks inside a name are bad": {
			annotation: "global/d ns", wantErr: `"global/d ns": "d ns" cannot be the name of a RolloutBlock`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseOverrides(tc.annotation)
			if message := errorText(err); message != tc.wantErr {
				t.Fatalf("ParseOverrides() error = %q, want %q", message, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ParseOverrides() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFormatOverrides(t *testing.T) {
	for name, tc := range map[string]struct {
		names []types.NamespacedName
		want  string
	}{
		"no names":                   {nil, ""},
		"sorted and without repeats": {[]types.NamespacedName{nn("b", "a"), nn("a", "b"), nn("b", "a")}, "a/b,b/a"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FormatOverrides(tc.names); got != tc.want {
				t.Errorf("FormatOverrides() = %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzFormatOfParsedIsAFixedPoint(f *testing.F) {
	for _, seed := range []string{"", "a/b", "b/a, a/b ,", "x", "a/b/c", "Ä/b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		names, err := ParseOverrides(annotation)
		if err != nil {
			return
		}
		formatted := FormatOverrides(names)
		again, err := ParseOverrides(formatted)
		if err != nil || FormatOverrides(again) != formatted {
			t.Errorf("%q was read as %q, which does not read as itself: %v", annotation, formatted, err)
		}
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
