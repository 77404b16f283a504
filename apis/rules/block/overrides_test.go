// SPDX-License-Identifier: Apache-2.0

package block

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
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

// stamped are annotations with an override and its records.
func stamped(override string, records ...Record) map[string]string {
	return map[string]string{
		shipper.RolloutBlockOverrideAnnotation:       override,
		shipper.RolloutBlockOverrideReasonAnnotation: "outage",
		shipper.RolloutBlockOverrideStampAnnotation:  FormatRecords(records),
		"other": "kept",
	}
}

// noted are annotations with an override and any text in place of its records.
func noted(override, stamp string) map[string]string {
	return map[string]string{
		shipper.RolloutBlockOverrideAnnotation: override, shipper.RolloutBlockOverrideStampAnnotation: stamp,
	}
}

func record(block, uid string) Record {
	return Record{Block: block, UID: types.UID(uid), User: "ann", Time: metav1.Time{Time: noon}, Reason: "outage"}
}

func TestOverrides(t *testing.T) {
	for sentence, tc := range map[string]struct {
		annotations map[string]string
		want        []Override
	}{
		"no annotations override nothing":   {nil, nil},
		"an empty one overrides nothing":    {stamped(" , "), nil},
		"a malformed one overrides nothing": {stamped("a/b,c", record("a/b", "1")), nil},
		"with the record of each": {
			stamped("a/b,a/c", record("a/c", "2")), []Override{over("a", "b"), {Name: nn("a", "c"), UID: "2"}},
		},
		"a record alone is no override":    {stamped("a/b", record("a/c", "2")), []Override{over("a", "b")}},
		"a record without a UID is of any": {stamped("a/b", record("a/b", "")), []Override{over("a", "b")}},
		"records that cannot be read are nil": {
			noted("a/b", "["), []Override{over("a", "b")},
		},
		"records of another form are nil": {
			noted("a/b", `[{"block":"a/b"},7]`), []Override{over("a", "b")},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Overrides(tc.annotations)); diff != "" {
				t.Errorf("Overrides() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecordsAreReadAsTheyAreWritten(t *testing.T) {
	records := []Record{record("a/b", "1"), {Block: "a/c", User: "bob", Time: metav1.Time{Time: noon}}}
	text := FormatRecords(records)
	const want = `[{"block":"a/b","uid":"1","user":"ann","time":"2026-11-20T12:00:00Z","reason":"outage"},` +
		`{"block":"a/c","user":"bob","time":"2026-11-20T12:00:00Z"}]`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("the annotation (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(records, Records(map[string]string{shipper.RolloutBlockOverrideStampAnnotation: text})); diff != "" {
		t.Errorf("the records (-want +got):\n%s", diff)
	}
	if text := FormatRecords(nil); text != "" {
		t.Errorf("none are %q", text)
	}
}

func TestKeep(t *testing.T) {
	before := stamped("a/b,a/c", record("a/b", "1"), record("a/c", "2"))
	for sentence, tc := range map[string]struct {
		names []types.NamespacedName
		want  map[string]string
	}{
		"nothing":              {nil, map[string]string{"other": "kept"}},
		"everything":           {[]types.NamespacedName{nn("a", "b"), nn("a", "c")}, before},
		"one, with its record": {[]types.NamespacedName{nn("a", "c")}, stamped("a/c", record("a/c", "2"))},
		"one without a record": {[]types.NamespacedName{nn("a", "d")}, map[string]string{
			"other": "kept", shipper.RolloutBlockOverrideAnnotation: "a/d", shipper.RolloutBlockOverrideReasonAnnotation: "outage",
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			was := maps.Clone(before)
			if diff := cmp.Diff(tc.want, Keep(before, tc.names)); diff != "" {
				t.Errorf("Keep() (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(was, before); diff != "" {
				t.Errorf("what was given changed (-want +got):\n%s", diff)
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
