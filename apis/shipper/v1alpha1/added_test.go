// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestTheAdditionsToTheOriginalAreListed compares our types with the original's, and both with the list in docs/compatibility.md: each kind
// and field that the original did not have is named there, without the fields below it.
func TestTheAdditionsToTheOriginalAreListed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	list, _, _ := strings.Cut(string(page), "\n## ")
	// listed reports whether an item for a kind, or one of what several kinds have, ends a path in backticks with the word.
	listed := func(kind, word string) bool {
		for _, item := range strings.Split(list, "\n* ")[1:] {
			of, _, _ := strings.Cut(item, ":")
			if strings.HasPrefix(of, "of ") && regexp.MustCompile(`[A-Z]`).MatchString(of) && !strings.Contains(of, kind+"s") {
				continue
			}
			for _, code := range regexp.MustCompile("`[^`]+`").FindAllString(item, -1) {
				path := strings.FieldsFunc(code, func(r rune) bool { return strings.ContainsRune("`.[] ", r) })
				if path[len(path)-1] == word {
					return true
				}
			}
		}
		return false
	}
	kinds := map[string][2]any{
		"Application": {originalApplication{}, Application{}}, "Release": {originalRelease{}, Release{}},
		"Cluster": {originalCluster{}, Cluster{}}, "RolloutBlock": {originalRolloutBlock{}, RolloutBlock{}},
		"InstallationTarget": {originalInstallationTarget{}, InstallationTarget{}},
		"CapacityTarget":     {originalCapacityTarget{}, CapacityTarget{}},
		"TrafficTarget":      {originalTrafficTarget{}, TrafficTarget{}},
	}
	for kind, types := range kinds {
		for _, field := range added(reflect.TypeOf(types[0]), reflect.TypeOf(types[1])) {
			if !listed(kind, field) {
				t.Errorf("%s has the field %s", kind, field)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "manifests", "crd", "shipper.booking.com_*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no definitions: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		kind := regexp.MustCompile(`\n    kind: (\w+)\n`).FindStringSubmatch(string(text))[1]
		if _, old := kinds[kind]; !old && !listed("", kind) {
			t.Errorf("there is the kind %s", kind)
		}
	}
}

// added are the fields of a type that an older one lacks, and those of the fields that both have.
func added(old, now reflect.Type) (out []string) {
	for old.Kind() == reflect.Pointer || old.Kind() == reflect.Slice {
		old = old.Elem()
	}
	for now.Kind() == reflect.Pointer || now.Kind() == reflect.Slice {
		now = now.Elem()
	}
	if now.Kind() != reflect.Struct || old.Kind() != reflect.Struct || now.PkgPath() != reflect.TypeFor[Release]().PkgPath() {
		return nil
	}
	was := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(old) {
		was[jsonName(f)] = f.Type
	}
	for _, f := range reflect.VisibleFields(now) {
		name := jsonName(f)
		switch before, had := was[name]; {
		case name == "" || f.Anonymous:
		case !had:
			out = append(out, name)
		default:
			out = append(out, added(before, f.Type)...)
		}
	}
	return out
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
