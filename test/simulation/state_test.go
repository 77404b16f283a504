// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// changes are expressions whose values change after a package was initialised.
var changes = regexp.MustCompile(`sync\.|atomic\.|keyedsemaphore\.|\blru\.|\bcache\.|make\(|singleflight\.|` +
	`prometheus\.New\w*(Vec|Counter|Gauge|Histogram|Registry)|\bnew\w*(Cache|Pool|Store)\(`)

// survives is what outlives a kill in a run, because all lives share one process: none of it may say what a reconciler has done or seen.
var survives = map[string]string{
	"apis/rules/block kept":                  "counts the windows",
	"apis/rules/block windows":               "has windows of blocks by their text",
	"apis/rules/block zones":                 "has time zones by name",
	"apis/rules/tracking domains":            "lists prefixes of labels, which never change",
	"chart/objects environments":             "compiles nothing but the environment of expressions, which never changes",
	"chart/values guesses":                   "bounds how many hashes are computed at a time",
	"chart/values remembered":                "has slow hashes of values by a quick one",
	"outward/body environments":              "compiles nothing but the environment of expressions, which never changes",
	"reconciler/check/measurement enforcing": "bounds the memory of parsers",
	"webhook/application digesting":          "has namespaces digest values in turns",
	"webhook/enumerated kinds":               "reads the embedded schemas, which never change",
	"outward/promql valid":                   "has digests of valid queries",
	"webhook/state releaseIndices":           "is a table of functions that is not written",
	"webhook/state runIndices":               "is a table of functions that is not written",
}

// TestOnlyKnownStateOutlivesAKill looks for package variables of the product that change. What they hold a real process would lose.
func TestOnlyKnownStateOutlivesAKill(t *testing.T) {
	found := map[string]string{}
	for _, root := range []string{"apis", "certs", "chart", "outward", "reconciler", "webhook"} {
		err := filepath.WalkDir(filepath.Join("../..", root), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			return stateOf(path, found)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range found {
		if survives[name] != "" {
			found[name] = survives[name]
		}
	}
	if diff := cmp.Diff(survives, found); diff != "" {
		t.Errorf("package variables that change (-known +found):\n%s", diff)
	}
}

// stateOf adds the package variables of a file that change.
func stateOf(path string, found map[string]string) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range file.Decls {
		variables, ok := d.(*ast.GenDecl)
		if !ok || variables.Tok != token.VAR {
			continue
		}
		for _, s := range variables.Specs {
			spec := s.(*ast.ValueSpec)
			var text strings.Builder
			if err := printer.Fprint(&text, files, spec); err != nil {
				return err
			}
			if changes.MatchString(text.String()) {
				found[strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../../")+" "+spec.Names[0].Name] = text.String()
			}
		}
	}
	return nil
}
