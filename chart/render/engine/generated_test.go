// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	helm "helm.sh/helm/v3/pkg/engine"

	"shipper.dev/shipper/chart/render/engine"
)

// generated is how many templates are made. Seeds are the numbers from 0 on: what fails once fails always.
const generated = 2000

// TestRendersGeneratedTemplatesLikeHelm composes templates of the functions and actions that charts use, most of them wrong somehow.
func TestRendersGeneratedTemplatesLikeHelm(t *testing.T) {
	files, works := shared(t), 0
	for seed := range uint64(generated) {
		g := generator{rand.New(rand.NewPCG(seed, 1))}
		files["templates/x.yaml"] = g.block(3)
		c := build("top", files)
		same, err := rendersAlike(t, c, func() chartutil.Values { return scope(t, c) })
		if !same {
			t.Errorf("seed %d: %v\n%s", seed, err, files["templates/x.yaml"])
		}
		if err == nil {
			works++
		}
	}
	if works < generated/4 || works > generated*9/10 {
		t.Errorf("%d of %d templates render: too many or too few to compare", works, generated)
	}
}

// TestRendersOurChartsLikeHelm renders the charts of the tests and the chart of Shipper itself.
func TestRendersOurChartsLikeHelm(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("..", "..", "..", "test", "charts", "*", "Chart.yaml"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("found no charts: %v", err)
	}
	rendered := 0
	for _, file := range append(folders, filepath.Join("..", "..", "..", "manifests", "chart", "Chart.yaml")) {
		folder := filepath.Dir(file)
		c, err := loader.LoadDir(folder)
		if err != nil {
			t.Fatalf("%s: %v", folder, err)
		}
		same, err := rendersAlike(t, c, func() chartutil.Values {
			options := chartutil.ReleaseOptions{Name: "rel", Namespace: "ns", Revision: 1, IsInstall: true}
			scope, err := chartutil.ToRenderValues(c, map[string]any{}, options, nil)
			if err != nil {
				t.Fatalf("%s: %v", folder, err)
			}
			return scope
		})
		if !same {
			t.Errorf("%s: %v", folder, err)
		}
		if err == nil {
			rendered++
		}
	}
	if rendered < len(folders)-1 {
		t.Errorf("%d of %d charts render", rendered, len(folders)+1)
	}
}

// rendersAlike reports whether both engines render a chart to the same, or both fail, or only the bounds of ours differ. err is why a
// rendering failed, or how the two differ.
func rendersAlike(t *testing.T, c *chart.Chart, scope func() chartutil.Values) (same bool, err error) {
	t.Helper()
	want, wantErr := byHelm(c, scope())
	got, err := engine.Render(t.Context(), c, scope())
	if errors.Is(err, engine.ErrBounds) { // Helm has none
		return true, err
	}
	if (err == nil) != (wantErr == nil) {
		return false, fmt.Errorf("error %w, in Helm %w", err, wantErr)
	}
	if err != nil {
		return true, err
	}
	for name := range want { // templates may print the names of types, which are each engine's own
		want[name], got[name] = types.Replace(want[name]), types.Replace(got[name])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return false, errors.New(diff)
	}
	return true, nil
}

var types = strings.NewReplacer("chartutil.Values", "map[string]interface {}", "engine.Values", "map[string]interface {}")

// byHelm renders by Helm's engine, whose functions may panic.
func byHelm(c *chart.Chart, scope chartutil.Values) (out map[string]string, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("panic: %v", caught)
		}
	}()
	return helm.Engine{}.Render(c, scope)
}

// generator makes templates.
type generator struct{ *rand.Rand }

func (g generator) one(of ...string) string { return of[g.IntN(len(of))] }

// block is some text with actions, nested at most depth times.
func (g generator) block(depth int) string {
	var out strings.Builder
	for range 1 + g.IntN(3) {
		out.WriteString(g.action(depth))
		out.WriteString(g.one("", "\n", "text ", "\n  ", "- "))
	}
	return out.String()
}

func (g generator) action(depth int) string {
	open, end := g.one("{{ ", "{{- "), g.one(" }}", " -}}")
	act := func(text string) string { return open + text + end }
	if depth == 0 {
		return act(g.pipeline())
	}
	switch g.IntN(9) {
	case 0:
		return act("if "+g.value(1)) + g.block(depth-1) + act("end")
	case 1:
		return act("if "+g.truth(1)) + g.block(depth-1) + act("else") + g.block(depth-1) + act("end")
	case 2:
		return act("range "+g.many(1)) + g.block(depth-1) + act("end")
	case 3:
		return act("range $k, $v := "+g.many(1)) + act("$k") + g.block(depth-1) + act("$v") + act("else") + "none" + act("end")
	case 4:
		return act("with "+g.value(1)) + g.block(depth-1) + act("end")
	case 5:
		return act("$x := "+g.value(1)) + g.block(depth-1) + act("$x | toString")
	case 6:
		name := fmt.Sprintf("%q", fmt.Sprintf("d%d", g.IntN(1000)))
		return act("define "+name) + g.block(0) + act("end") + act("include "+name+" $")
	default:
		return act(g.pipeline())
	}
}

// pipeline is a value that some functions take on.
func (g generator) pipeline() string {
	switch g.IntN(4) {
	case 0:
		return g.text(2) + " | " + g.one("quote", "squote", "upper", "lower", "title", "trim", "trunc 3", "trunc -2", "indent 2", "nindent 4",
			"b64enc", "sha256sum", "replace \"e\" \"E\"", "trimSuffix \"b\"", "splitList \"-\"", "fromYaml", "fromJson", "contains \"w\"",
			"hasPrefix \"w\"", "repeat 2", "snakecase", "camelcase", "required \"needed\"", "initials", "wrap 3", "toToml", "int", "atoi")
	case 1:
		return g.many(2) + " | " + g.one("toYaml", "toJson", "len", "first", "last", "join \",\"", "sortAlpha", "uniq",
			"keys | sortAlpha", "compact",
			"reverse", "toPrettyJson", "toYamlPretty", "mustToJson", "deepCopy | toYaml", "toYaml | nindent 2", "values | len", "toStrings")
	case 2:
		return g.number(2) + " | " + g.one("add 1", "mul 2", "int64", "float64", "toString", "quote", "printf \"%05d\"", "until",
			"kindOf", "mod 7", "div 5")
	}
	return g.value(2) + " | " + g.one("toYaml", "toJson", "quote", "toString", "kindOf", "typeOf", "not", "empty", "default \"d\"",
		"coalesce \"c\"",
		"ternary 1 2", "len", "upper")
}

// value is any operand.
func (g generator) value(depth int) string {
	return []func(int) string{g.text, g.number, g.many, g.truth, g.odd}[g.IntN(5)](depth)
}

// odd is an operand that is nothing, or not what is expected.
func (g generator) odd(int) string {
	return g.one(".", "$.Values.nothing", "$.Values.missing", "$.Values.empty", "$.Values.nothing.more", "nil", "'c'",
		"$.Files", "$.Release",
		"(fail \"no\")", "(lookup \"v1\" \"Pod\" \"\" \"\")", "$.Capabilities")
}

func (g generator) text(depth int) string {
	if depth == 0 || g.IntN(3) == 0 {
		return g.one("$.Values.name", "$.Values.sub.deep.er", "$.Values.empty", "$.Release.Name", "$.Chart.Version", "$.Template.Name",
			"$.Template.BasePath", "$.Capabilities.KubeVersion.Version", "$.Values.global.env", "\"text\"", "\"a-b\"", "`raw: 1`")
	}
	a, b, n := g.text(depth-1), g.text(depth-1), g.number(depth-1)
	return "(" + g.one("upper "+a, "lower "+a, "printf \"%s-%s\" "+a+" "+b, "printf \"%d\" "+n, "printf \"%v %T\" "+g.value(depth-1)+" "+n,
		"trunc 4 "+a, "replace "+a+" "+b+" \"xayb\"", "default "+a+" "+g.value(depth-1), "include \"greet\" $",
		"tpl $.Values.tpl $", "toYaml "+g.value(depth-1),
		"toJson "+g.many(depth-1), "join \"-\" "+g.list(depth-1), "quote "+g.value(depth-1), "cat "+a+" "+n+" "+b,
		"ternary "+a+" "+b+" "+g.truth(depth-1),
		"regexReplaceAll \"[a-e]\" "+a+" "+b, "kindOf "+g.value(depth-1), "substr 0 2 "+a, "trimPrefix "+a+" "+b, "b64dec (b64enc "+a+")",
		"$.Files.Get "+a, "adler32sum "+a, "coalesce "+g.value(depth-1)+" "+a, "plural \"one\" \"many\" "+n, "toString "+g.value(depth-1)) + ")"
}

func (g generator) number(depth int) string {
	if depth == 0 || g.IntN(3) == 0 {
		return g.one("$.Values.n", "$.Values.map.a", "0", "1", "-2", "7", "$.Values.f", "$.Release.Revision")
	}
	a, b := g.number(depth-1), g.number(depth-1)
	return "(" + g.one("add "+a+" "+b, "sub "+a+" "+b, "mul "+a+" "+b, "div "+a+" "+b, "mod "+a+" 3", "max "+a+" "+b, "min "+a+" "+b,
		"len "+g.many(depth-1),
		"len "+g.text(depth-1), "int "+g.value(depth-1), "int64 "+a, "floor "+a, "ceil "+a, "round "+a+" 1",
		"atoi "+g.text(depth-1), "add1 "+a) + ")"
}

func (g generator) truth(depth int) string {
	if depth == 0 || g.IntN(4) == 0 {
		return g.one("true", "false", "$.Values.yes", "$.Release.IsUpgrade", "$.Values.missing")
	}
	a, b := g.text(depth-1), g.text(depth-1)
	return "(" + g.one("eq "+a+" "+b, "ne "+a+" "+b, "lt "+g.number(depth-1)+" "+g.number(depth-1),
		"and "+g.truth(depth-1)+" "+g.value(depth-1),
		"or "+g.value(depth-1)+" "+g.truth(depth-1), "not "+g.value(depth-1), "hasKey "+g.object(depth-1)+" "+a, "has "+a+" "+g.list(depth-1),
		"empty "+g.value(depth-1), "contains "+a+" "+b, "kindIs \"map\" "+g.value(depth-1), "semverCompare \">=1.2-0\" $.Chart.Version",
		"regexMatch \"^[a-z]+$\" "+a, "deepEqual "+g.value(depth-1)+" "+g.value(depth-1), "$.Capabilities.APIVersions.Has \"apps/v1\"",
		"eq "+g.value(depth-1)+" "+g.value(depth-1)) + ")"
}

// many is a list or an object.
func (g generator) many(depth int) string {
	if g.IntN(2) == 0 {
		return g.list(depth)
	}
	return g.object(depth)
}

func (g generator) list(depth int) string {
	if depth == 0 || g.IntN(3) == 0 {
		return g.one("$.Values.list", "(list 3 1 2)", "(list \"b\" \"a\" \"b\")", "(list)", "$.Chart.Keywords", "(until 3)")
	}
	a := g.list(depth - 1)
	return "(" + g.one("list "+g.value(depth-1)+" "+g.value(depth-1), "append "+a+" "+g.value(depth-1), "prepend "+a+" "+g.text(depth-1),
		"concat "+a+" "+g.list(depth-1), "without "+a+" "+g.text(depth-1), "uniq "+a, "reverse "+a, "rest "+a, "initial "+a, "compact "+a,
		"sortAlpha "+a, "splitList \"-\" "+g.text(depth-1), "slice "+a+" 0 1", "keys "+g.object(depth-1)+" | sortAlpha", "untilStep 0 9 4",
		"chunk 2 "+a, "fromYamlArray (toYaml "+a+")", "fromJsonArray (toJson "+a+")") + ")"
}

func (g generator) object(depth int) string {
	if depth == 0 || g.IntN(3) == 0 {
		return g.one("$.Values.map", "$.Values.sub", "(dict \"k\" \"v\" \"n\" 1)", "(dict)", "$.Values.global")
	}
	a := g.object(depth - 1)
	return "(" + g.one("dict \"x\" "+g.value(depth-1)+" \"y\" "+g.value(depth-1), "set (deepCopy "+a+") "+g.text(depth-1)+" "+g.value(depth-1),
		"merge (deepCopy "+a+") "+g.object(depth-1), "mergeOverwrite (deepCopy "+a+") "+g.object(depth-1),
		"pick "+a+" \"a\" \"k\"", "omit "+a+" \"b\"",
		"unset (deepCopy "+a+") \"a\"", "fromYaml (toYaml "+a+")", "fromJson (toJson "+a+")", "get (dict \"o\" "+a+") \"o\"",
		"dig \"deep\" (dict) "+a, "index (list "+a+") 0") + ")"
}

// TestTheComparisonFindsADifference: a comparison that finds none proves nothing.
func TestTheComparisonFindsADifference(t *testing.T) {
	c := build("top", map[string]string{"templates/x.yaml": "{{ .Values.name }}"})
	calls := 0
	same, _ := rendersAlike(t, c, func() chartutil.Values {
		out := scope(t, c)
		if calls++; calls == 2 {
			values, err := out.Table("Values")
			if err != nil {
				t.Fatal(err)
			}
			values["name"] = "another"
		}
		return out
	})
	if same {
		t.Error("two engines that see other values render the same")
	}
}
