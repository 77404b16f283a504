// SPDX-License-Identifier: Apache-2.0

// Package promises keeps the tables of docs/compatibility.md, docs/releases.md, docs/checks.md, docs/from-argo-rollouts.md,
// docs/from-keptn.md and docs/from-kubefleet.md honest: what they say shows a promise is there.
package promises

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root = "../.."
	// compatibility has the original's promises and the rulings, releases what comes of ugly inputs.
	compatibility, releases = "compatibility.md", "releases.md"
	// checks has what happens while a step is checked.
	checks = "checks.md"
	// argo has the rules of Argo Rollouts.
	argo = "from-argo-rollouts.md"
	// keptn has the rules of the shipyard specification, and of Keptn's controller.
	keptn = "from-keptn.md"
	// architecture has the ways through the code.
	architecture = "architecture.md"
	// shownBy is the column that names tests, or says notYet. rulingOf names rulings by their number.
	shownBy, rulingOf = "shown by", "ruling"
	notYet            = "not yet"
	// disagreements is how many points text and original disagree in, at least. Later decisions follow.
	disagreements = 24
	// least is how many promises the original's documentation makes, if it was read well.
	least = 120
	// leastUgly is how many ugly inputs there are at least: those that Releases were made for.
	leastUgly = 15
	// leastChecks is how many events there are at least.
	leastChecks = 18
	// leastArgo is how many rows those rules are.
	leastArgo = 21
	// rulesOfTheSpecification and rulesOfTheController are how many rules of each there are: K1 to K22, and KS1 to KS25.
	rulesOfTheSpecification, rulesOfTheController = 22, 25
)

// row is a row of a table, by the names of its columns.
type row struct {
	line  int
	cells map[string]string
}

// bar separates cells, unless it is escaped.
var bar = regexp.MustCompile(`(^|[^\\])\|`)

// tables are the rows of all tables of a text that have those columns.
func tables(text string, columns ...string) []row {
	var out []row
	var header []string
	for i, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "|") {
			header = nil
			continue
		}
		cells := cellsOf(line)
		if header == nil {
			header = cells
			continue
		}
		if strings.HasPrefix(cells[0], "---") || len(cells) != len(header) && !has(header, columns) || !has(header, columns) {
			continue
		}
		r := row{line: i + 1, cells: map[string]string{}}
		for j, name := range header {
			if j < len(cells) {
				r.cells[name] = cells[j]
			}
		}
		out = append(out, r)
	}
	return out
}

func has(header, columns []string) bool {
	return !slices.ContainsFunc(columns, func(c string) bool { return !slices.Contains(header, c) })
}

func cellsOf(line string) []string {
	line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|")
	var out []string
	for _, cell := range strings.Split(bar.ReplaceAllString(line, "$1\x00"), "\x00") {
		out = append(out, strings.TrimSpace(strings.ReplaceAll(cell, `\|`, "|")))
	}
	return out
}

func read(t *testing.T, document string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", document))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// quoted finds what is named in a cell.
var quoted = regexp.MustCompile("`([^`]+)`")

func TestEveryPromiseIsShown(t *testing.T) {
	source := packages{}
	for document, least := range map[string]int{compatibility: least, releases: leastUgly, checks: leastChecks, argo: leastArgo,
		keptn: rulesOfTheSpecification + rulesOfTheController} {
		rows := tables(read(t, document), shownBy)
		if len(rows) < least {
			t.Errorf("%s has %d rows that say what shows them, want %d at least", document, len(rows), least)
		}
		for _, r := range rows {
			shown := r.cells[shownBy]
			if strings.HasPrefix(shown, notYet) {
				continue
			}
			names := quoted.FindAllStringSubmatch(shown, -1)
			if len(names) == 0 {
				t.Errorf("%s, line %d names no test, and does not say %q: %s", document, r.line, notYet, shown)
			}
			for _, name := range names {
				if err := source.find(name[1]); err != nil {
					t.Errorf("%s, line %d: %v", document, r.line, err)
				}
			}
		}
	}
}

// TestEveryRuleOfKeptnHasARow fails for a rule without a row that says what is here, and which test shows it or why none does.
func TestEveryRuleOfKeptnHasARow(t *testing.T) {
	rows := map[string]row{}
	for _, r := range tables(read(t, keptn), "rule", "there", "here", shownBy) {
		for _, rule := range strings.Split(r.cells["rule"], ", ") {
			if _, twice := rows[rule]; twice {
				t.Errorf("%s, line %d: rule %s is there already", keptn, r.line, rule)
			}
			rows[rule] = r
		}
	}
	var want []string
	for i := range rulesOfTheSpecification {
		want = append(want, fmt.Sprintf("K%d", i+1))
	}
	for i := range rulesOfTheController {
		want = append(want, fmt.Sprintf("KS%d", i+1))
	}
	for _, rule := range want {
		r, is := rows[rule]
		why, isNot := strings.CutPrefix(r.cells[shownBy], notYet)
		switch {
		case !is:
			t.Errorf("%s: there is no rule %s", keptn, rule)
		case isNot && !strings.HasPrefix(why, ": "):
			t.Errorf("%s, line %d: rule %s is not there yet, and no reason is given", keptn, r.line, rule)
		case !isNot && r.cells["here"] == "", r.cells["there"] == "":
			t.Errorf("%s, line %d: rule %s has an empty cell", keptn, r.line, rule)
		}
		delete(rows, rule)
	}
	for rule, r := range rows {
		t.Errorf("%s, line %d: there is no rule %s", keptn, r.line, rule)
	}
}

// packages are the tests of packages, by folder.
type packages map[string]*tests

// tests are the functions of a package's tests, and the texts in them: those of sub-tests are among them.
type tests struct {
	functions, texts map[string]bool
}

// reference is `package: Test`, a fuzz target as well, or `package: Test/sub-test`.
var reference = regexp.MustCompile(`^([a-z0-9/-]+): ((?:Test|Fuzz)\w+)(?:/(.+))?$`)

// find looks for a test.
func (p packages) find(name string) error {
	parts := reference.FindStringSubmatch(name)
	if parts == nil {
		return fmt.Errorf("%q is not `package: Test/sub-test`", name)
	}
	folder, function, sub := parts[1], parts[2], parts[3]
	in, err := p.in(folder)
	switch {
	case err != nil:
		return err
	case !in.functions[function]:
		return fmt.Errorf("there is no %s in %s", function, folder)
	case sub == "" || in.texts[sub]:
		return nil
	}
	// The museum's sub-tests are its files.
	if _, err := os.Stat(filepath.Join(root, "test", "invalid", sub+".yaml")); err == nil {
		return nil
	}
	return fmt.Errorf("%s in %s has no sub-test %q", function, folder, sub)
}

func (p packages) in(folder string) (*tests, error) {
	if p[folder] != nil {
		return p[folder], nil
	}
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(fmt.Errorf("there are no tests in %s", folder), err)
	}
	out := &tests{functions: map[string]bool{}, texts: map[string]bool{}}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				out.functions[n.Name.Name] = n.Recv == nil
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil {
					out.texts[text] = true
				}
			}
			return true
		})
	}
	p[folder] = out
	return out, nil
}

func TestEveryRulingIsGivenAndUsed(t *testing.T) {
	text := read(t, compatibility)
	var given []string
	for _, r := range tables(text, "#", rulingOf) {
		given = append(given, r.cells["#"])
	}
	for i, number := range given {
		if number != fmt.Sprint(i+1) {
			t.Errorf("ruling %d is called %q", i+1, number)
		}
	}
	if len(given) < disagreements {
		t.Errorf("there are %d rulings, want %d at least", len(given), disagreements)
	}
	used := map[string]bool{}
	for _, r := range tables(text, shownBy, rulingOf) {
		for _, number := range strings.FieldsFunc(r.cells[rulingOf], func(c rune) bool { return c == ',' || c == ' ' }) {
			used[number] = true
			if !slices.Contains(given, number) {
				t.Errorf("line %d: there is no ruling %s", r.line, number)
			}
		}
	}
	for i, number := range given {
		if i < disagreements && !used[number] {
			t.Errorf("no promise refers to ruling %s", number)
		}
	}
}

func TestPromisesFollowTheChapters(t *testing.T) {
	var before []int
	count := 0
	for _, r := range tables(read(t, compatibility), "chapter", "promise", shownBy, rulingOf) {
		count++
		var at []int
		for _, part := range strings.Split(r.cells["chapter"], ".") {
			n, err := strconv.Atoi(part)
			if err != nil {
				t.Fatalf("line %d: %q is no chapter", r.line, r.cells["chapter"])
			}
			at = append(at, n)
		}
		if slices.Compare(before, at) > 0 {
			t.Errorf("line %d: chapter %v comes after %v", r.line, at, before)
		}
		if before = at; r.cells["promise"] == "" {
			t.Errorf("line %d promises nothing", r.line)
		}
	}
	if count < least {
		t.Errorf("there are %d promises, want %d at least", count, least)
	}
}

// A missing test must be reported: a test that finds everything proves nothing.
func TestWhatIsNotThereIsMissed(t *testing.T) {
	source := packages{}
	for _, name := range []string{
		"test/promises: TestEveryPromiseIsShown", "test/promises: TestWhatIsNotThereIsMissed/test/promises: TestNobody",
		"test/admission: TestInvalidObjectsAreRefused/application/no-steps",
	} {
		if err := source.find(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{
		"test/promises: TestNobody", "test/nowhere: TestEveryPromiseIsShown", "TestEveryPromiseIsShown", "test/promises: read",
		"test/promises: TestEveryPromiseIsShown/" + strings.Repeat("nothing", 2),
	} {
		if err := source.find(name); err == nil {
			t.Errorf("%s was found", name)
		}
	}
	if got := cellsOf(`| a | b \| c |  | `); !slices.Equal(got, []string{"a", "b | c", ""}) {
		t.Errorf("cells are %q", got)
	}
}

// TestTheWaysThroughTheCodeExist reads the hops of architecture.md: each names a file, and a function in it.
func TestTheWaysThroughTheCodeExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", architecture))
	if err != nil {
		t.Fatal(err)
	}
	hops := tables(string(text), "file", "function")
	if len(hops) < 10 {
		t.Fatalf("%d hops are listed, want 10 or more", len(hops))
	}
	for _, hop := range hops {
		file, function := strings.Trim(hop.cells["file"], "`"), strings.Trim(hop.cells["function"], "`")
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("line %d: %v", hop.line, err)
			continue
		}
		if !slices.ContainsFunc(parsed.Decls, func(d ast.Decl) bool {
			f, ok := d.(*ast.FuncDecl)
			return ok && f.Name.Name == function
		}) {
			t.Errorf("line %d: %s has no function %s", hop.line, file, function)
		}
	}
}
