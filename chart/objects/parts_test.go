// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// withData is a ConfigMap or a Secret with a text.
func withData(kind, name, text string) unstructured.Unstructured {
	o := named("v1", kind, "work", name)
	o.Object["data"] = map[string]any{"k": text}
	return o
}

func mustSplit(t *testing.T, objects []unstructured.Unstructured, most int) []Part {
	t.Helper()
	parts, err := split(objects, most)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

func TestSplitKeepsSecretsApart(t *testing.T) {
	objects := []unstructured.Unstructured{withData("Secret", "s", "aGk="), withData("ConfigMap", "b", "<1>"), withData("ConfigMap", "a", "1")}
	got, err := Split(objects)
	if err != nil {
		t.Fatal(err)
	}
	plain := `{"apiVersion":"v1","data":{"k":"1"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"work"}}` + "\n" +
		`{"apiVersion":"v1","data":{"k":"<1>"},"kind":"ConfigMap","metadata":{"name":"b","namespace":"work"}}` + "\n"
	secrets := `{"apiVersion":"v1","data":{"k":"aGk="},"kind":"Secret","metadata":{"name":"s","namespace":"work"}}` + "\n"
	of := Part{Digest: digest(t, objects), Objects: 3, Bytes: len(plain) + len(secrets), Parts: 2}
	first, second := of, of
	first.Data = plain
	second.Part, second.Secret, second.Data = 1, true, secrets
	if diff := cmp.Diff([]Part{first, second}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheFirstPartIsNotSecret(t *testing.T) {
	for name, objects := range map[string][]unstructured.Unstructured{
		"nothing": nil, "a Secret": {withData("Secret", "s", "")},
	} {
		parts := mustSplit(t, objects, MaxPartBytes)
		if diff := cmp.Diff(Part{
			Digest: digest(t, objects), Objects: len(objects), Bytes: parts[0].Bytes, Parts: 1 + len(objects),
		}, parts[0]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		got, err := Join(parts)
		if err != nil || len(got) != len(objects) {
			t.Errorf("%s: %d objects, %v", name, len(got), err)
		}
	}
}

// TestPartsFitIntoAnObject counts the bytes of the JSON that the API server stores: a text of quotes takes twice its length.
func TestPartsFitIntoAnObject(t *testing.T) {
	for name, text := range map[string]string{
		"letters": "a", "quotes": `"`, "angle brackets": "<", "three bytes": "€", "four bytes": "😀", "control characters": "\x01",
		"separators": "\u2028", "backspaces": "\b\f",
	} {
		objects := []unstructured.Unstructured{
			withData("ConfigMap", "a", strings.Repeat(text, 1000/len(text))), withData("ConfigMap", "b", strings.Repeat(text, 10)),
			withData("Secret", "c", strings.Repeat(text, 1000/len(text))), withData("ConfigMap", "d", text),
		}
		const most = 300
		parts := mustSplit(t, objects, most)
		for _, p := range parts {
			raw, err := json.Marshal(p.Data)
			if err != nil || len(raw) > most+2 || len(raw) < most/8 {
				t.Errorf("%s: part %d takes %d bytes, %v", name, p.Part, len(raw), err)
			}
		}
		got, err := Join(parts)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		Sort(objects)
		if diff := cmp.Diff(objects, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestPartsEndWithLinesUnlessAnObjectIsLarger(t *testing.T) {
	var objects []unstructured.Unstructured
	for i := range 50 {
		objects = append(objects, withData("ConfigMap", fmt.Sprintf("c%02d", i), "v"))
	}
	parts := mustSplit(t, objects, 500)
	for _, p := range parts {
		if !strings.HasSuffix(p.Data, "}\n") {
			t.Errorf("part %d ends with %q", p.Part, p.Data[len(p.Data)-10:])
		}
	}
	if len(parts) < 10 {
		t.Errorf("%d parts", len(parts))
	}
}

func TestTooLargeNamesTheFiveLargest(t *testing.T) {
	var objects []unstructured.Unstructured
	for i := range 9 {
		objects = append(objects, withData("ConfigMap", fmt.Sprintf("c%d", i), strings.Repeat("x", (900+10*i)<<10)))
	}
	objects = append(objects, withData("Secret", "s", strings.Repeat("x", 700<<10)))
	_, err := Split(objects[:8])
	if err != nil {
		t.Errorf("8 objects with less than 8 MiB: %v", err)
	}
	_, err = Split(objects)
	if _, ok := errors.AsType[*TooLarge](err); !ok {
		t.Fatalf("got %v", err)
	}
	want := "10 objects with 8.9 MiB together: at most 2000 objects with 8 MiB can be placed; the largest are " +
		"ConfigMap work/c8 (980.1 KiB), ConfigMap work/c7 (970.1 KiB), " +
		"ConfigMap work/c6 (960.1 KiB), ConfigMap work/c5 (950.1 KiB), ConfigMap work/c4 (940.1 KiB)"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
}

func TestTooManyObjectsAreRefused(t *testing.T) {
	var objects []unstructured.Unstructured
	for i := range MaxObjects + 1 {
		objects = append(objects, named("v1", "ConfigMap", "work", fmt.Sprint(i)))
	}
	if _, err := Split(objects[1:]); err != nil {
		t.Errorf("%d objects: %v", MaxObjects, err)
	}
	_, err := Split(objects)
	large, ok := errors.AsType[*TooLarge](err)
	if !ok || large.Objects != MaxObjects+1 || len(large.Largest) != 5 {
		t.Errorf("%d objects: %v", MaxObjects+1, err)
	}
}

func TestSplitRefusesAnObjectThatIsThereTwice(t *testing.T) {
	_, err := Split([]unstructured.Unstructured{
		named("apps/v1", "Deployment", "work", "web"), named("v1", "ConfigMap", "work", "web"),
		named("apps/v1beta1", "Deployment", "work", "web"),
	})
	if err == nil || err.Error() != "Deployment work/web is there twice" {
		t.Errorf("got %v", err)
	}
}

func TestJoinRefusesPartsThatAreNotOneSnapshot(t *testing.T) {
	parts := mustSplit(t, []unstructured.Unstructured{
		withData("ConfigMap", "a", "1"), withData("ConfigMap", "b", "2"), withData("Secret", "s", "3"),
	}, 150)
	other := mustSplit(t, []unstructured.Unstructured{
		withData("ConfigMap", "a", "1"), withData("ConfigMap", "b", "2"), withData("Secret", "s", "4"),
	}, 150)
	if len(parts) != 3 || len(other) != 3 {
		t.Fatalf("%d and %d parts, want 3", len(parts), len(other))
	}
	changed := func(i int, change func(*Part)) []Part {
		out := slices.Clone(parts)
		change(&out[i])
		return out
	}
	for name, c := range map[string]struct {
		parts []Part
		want  string
	}{
		"none":          {nil, "the snapshot has no parts"},
		"first missing": {parts[1:], "part 0 of the snapshot is missing: it has 3 parts"},
		"one missing":   {[]Part{parts[2], parts[0]}, "part 1 of the snapshot is missing: it has 3 parts"},
		"last missing":  {parts[:2], "part 2 of the snapshot is missing: it has 3 parts"},
		"one twice":     {[]Part{parts[0], parts[2], parts[1], parts[1]}, "part 1 of the snapshot is there twice"},
		"one of another": {[]Part{parts[0], parts[1], other[2]},
			"parts 0 and 2 are of different snapshots, with the digests " + parts[0].Digest + " and " + other[0].Digest},
		"number too high": {changed(2, func(p *Part) { p.Part = 3 }), "part 3 of the snapshot is not one of its 3 parts"},
		"number below 0":  {changed(0, func(p *Part) { p.Part = -1 }), "part -1 of the snapshot is not one of its 3 parts"},
		"other content": {changed(2, func(p *Part) { p.Data = other[2].Data }),
			"the snapshot has 3 objects with the digest " + other[0].Digest + ", want 3 with " + parts[0].Digest},
		"no JSON": {changed(1, func(p *Part) { p.Data = "{\n" }), "object 1 of the snapshot cannot be read: unexpected end of JSON input"},
	} {
		_, err := Join(c.parts)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if diff := cmp.Diff(c.want, err.Error()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
