// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"shipper.dev/shipper/cmd/shipperctl/convert/condition"
	"shipper.dev/shipper/outward/expression"
)

// arguments has the values that arguments usually have.
func arguments(name string) (as, usually string) {
	return strings.ReplaceAll(name, "-", "_"), map[string]string{"most": "0.5", "strict": "true", "word": "fine"}[name]
}

var (
	sample   = condition.Operand{CEL: "result", Sample: true, Argument: arguments}
	response = condition.Operand{CEL: "response.json", Argument: arguments}
)

// program compiles a translation, in the language of Checks and as strictly as Kubernetes does: numbers of two types do not compare, and
// lists have one type.
func program(t *testing.T, translation string) cel.Program {
	t.Helper()
	in := expression.Inputs{Args: []string{"at_most", "most", "strict"}, HTTP: strings.Contains(translation, "response.")}
	if !in.HTTP {
		in.Queries = []string{"result"}
	}
	if err := expression.Check(t.Context(), translation, in, environment.NewExpressions); err != nil {
		t.Errorf("%s: %v", translation, err)
	}
	return compiled(t, translation)
}

func compiled(t *testing.T, expression string) cel.Program {
	t.Helper()
	env, err := cel.NewEnv(cel.Variable("result", cel.DoubleType), cel.Variable("args", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("response", cel.MapType(cel.StringType, cel.DynType)), cel.HomogeneousAggregateLiterals())
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", expression, issues.Err())
	}
	if ast.OutputType() != cel.BoolType {
		t.Fatalf("%s is %s", expression, ast.OutputType())
	}
	out, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestConditionsOfSamples(t *testing.T) {
	const yes, no, fails, depends = condition.True, condition.False, condition.Fails, condition.Depends
	for _, c := range []struct {
		expr, cel  string
		empty, nan condition.Outcome
	}{
		{"result[0] >= 0.95", "result >= 0.95", fails, no},
		{"result[0] != 1", "result != 1.0", fails, yes},
		{"result <= 1", "result <= 1.0", no, no},
		{"result < 1_000 and not (result[0] == 3)", "result < 1000.0 && !(result == 3.0)", no, no},
		{"len(result) > 0 && result[0] >= 0.95", "result >= 0.95", no, no},
		{"len(result) == 0 || result[0] >= 0.95", "result >= 0.95", yes, no},
		{"len(result) == 0 ? false : result[0] > 5", "result > 5.0", no, no},
		{"isNaN(result[0]) || result[0] >= 0.95", "result >= 0.95", fails, yes},
		{"!isNaN(result[0]) && result[0] >= 0.95", "result >= 0.95", fails, no},
		{"isNaN(result) || result >= 0.95", "result >= 0.95", yes, yes},
		{"isInf(result)", `result in [double("Infinity"), double("-Infinity")]`, no, no},
		{"default(result, 0) < 5", "result < 5.0", no, no},
		{"asFloat(result[0]) * 100 > 5 && asInt(result[0]) < 9", "result * 100.0 > 5.0 && double(int(result)) < 9.0", fails, no},
		{"(result[0] + 1) * 2 - -3 < 1e3", "(result + 1.0) * 2.0 - -3.0 < 1000.0", fails, no},
		{"1 - (result[0] - 2) > 0", "1.0 - (result - 2.0) > 0.0", fails, no},
		{"result[0] < {{args.most}}", "result < double(args.most)", fails, no},
		{"result[0] < {{ args.at-most }}", "result < double(args.at_most)", fails, no},
		{"len(result) == 0 || {{args.strict}}", `args.strict == "true"`, yes, depends},
		{"all(result, # < 1000)", "result < 1000.0", yes, no},
		{"none(result, {# > 1 || # < 0})", "!(result > 1.0 || result < 0.0)", yes, yes},
		{"result[0] in [1, 2]", "result in [1.0, 2.0]", fails, no},
		{"0 < result[0] < 1", "0.0 < result && result < 1.0", fails, no},
		{"true", "true", yes, yes},
	} {
		t.Run(c.expr, func(t *testing.T) {
			got, err := condition.Parse(c.expr, sample)
			if err != nil {
				t.Fatal(err)
			}
			if got.CEL != c.cel || got.Empty != c.empty || got.NaN != c.nan {
				t.Errorf("got  %s, %s if empty, %s if NaN\nwant %s, %s, %s", got.CEL, got.Empty, got.NaN, c.cel, c.empty, c.nan)
			}
			program(t, got.CEL)
		})
	}
}

func TestConditionsOfResponses(t *testing.T) {
	for _, c := range []struct{ expr, cel, json string }{
		{"result.ok && result.successPercent >= 0.90", "response.json.ok && response.json.successPercent >= 0.9",
			`{"ok": true, "successPercent": 0.9}`},
		{"result.ok", "response.json.ok == true", `{"ok": true}`},
		{"!result.broken", "!response.json.broken", `{"broken": false}`},
		{"result == 'it\\'s \"up\"'", `response.json == "it's \"up\""`, `it's "up"`},
		{"result[0].name == `a`", `response.json[0].name == "a"`, `[{"name": "a"}]`},
		{`result["per-cent"] + 1 > 2`, `double(response.json["per-cent"]) + 1.0 > 2.0`, `{"per-cent": 3}`},
		{"(result.made * result.good / 100) >= 90", "double(response.json.made) * double(response.json.good) / 100.0 >= 90.0",
			`{"made": 100, "good": 95}`},
		{"result.state in ['up', 'ready'] and result.state startsWith 'u'",
			`(response.json.state == "up" || response.json.state == "ready") && response.json.state.startsWith("u")`, `{"state": "up"}`},
		{"result.state not in ['down']", `!(response.json.state == "down")`, `{"state": "up"}`},
		{"all(result.values, {asFloat(.value) >= 9900})", "response.json.values.all(x, double(x.value) >= 9900.0)",
			`{"values": [{"value": "9901"}, {"value": 9902}]}`},
		{"any(result, .ok) && none(result, {#.bad})",
			"response.json.exists(x, x.ok == true) && !response.json.exists(x, x.bad == true)", `[{"ok": true, "bad": false}]`},
		{"result.a contains 'b' && result.a endsWith 'c'", `response.json.a.contains("b") && response.json.a.endsWith("c")`, `{"a": "abc"}`},
		{"one(result, # == 1) && asInt(result[0]) == 1 && !isInf(result[0])", `response.json.exists_one(x, x == 1.0) && ` +
			`double(int(response.json[0])) == 1.0 && !(double(response.json[0]) in [double("Infinity"), double("-Infinity")])`, `[1, 2]`},
		{"'a' in result.tags", `"a" in response.json.tags`, `{"tags": ["a"]}`},
		{"len(result.items) > 1", "double(size(response.json.items)) > 1.0", `{"items": [1, 2]}`},
		{"default(result, 0) < 0.05", "(response.json == null ? 0.0 : response.json) < 0.05", `null`},
		{"isNil(result) || result == nil", "response.json == null || response.json == null", `null`},
		{"result.version == 'v{{args.at-most}}'", `response.json.version == "v" + args.at_most`, `{"version": "v7"}`},
		{"result.a ? result.b : true", "(response.json.a ? response.json.b : true) == true", `{"a": true, "b": true}`},
	} {
		t.Run(c.expr, func(t *testing.T) {
			got, err := condition.Parse(c.expr, response)
			if err != nil {
				t.Fatal(err)
			}
			if got.CEL != c.cel {
				t.Errorf("got  %s\nwant %s", got.CEL, c.cel)
			}
			out, _, err := program(t, got.CEL).Eval(map[string]any{
				"response": map[string]any{"json": decoded(t, c.json)}, "args": map[string]string{"at_most": "7"},
			})
			if err != nil || out.Value() != true {
				t.Errorf("%s of %s is %v: %v", got.CEL, c.json, out, err)
			}
		})
	}
}

func TestConditionsThatAreRefused(t *testing.T) {
	for expr, want := range map[string]string{
		"":                                "unexpected token EOF",
		"result[0] >=":                    "unexpected token EOF",
		"result[0] >= 1)":                 `unexpected token Bracket(")")`,
		"result[1] >= 1":                  "result[1] is the value of another series: a query gives one",
		"results[0] >= 90":                "results is not known",
		"filter(result, # > 1)":           "filter is not known",
		"len(result) > 5":                 "it is always false for one value",
		"len(result) > 0":                 "it is always true for one value",
		"result[0]":                       "it is a number, and not true or false",
		"result[0] == 'up'":               "== compares a number with a text",
		"result[0] == nil":                "== compares a number with nil",
		"result[0].Values > 1":            "a sample of Prometheus has no field Values",
		"result[0] % 2 == 0":              "a Check cannot compute result[0] % 2",
		"result[0] < {{args.word}}":       `the argument word is "fine", and only numbers, true and false can be arguments of conditions`,
		"result[0] < {{templates.a}}":     "{{templates.a}} is no argument",
		"result[0] == 'up":                "literal not terminated",
		"# > 1":                           `unexpected token Operator("#")`,
		"all(result, any(result, # > 1))": "a list in a list is judged",
		"result[0] in [1, 'a']":           "a list has a number and a text",
		"!(result[0] + 1)":                "! is of a number",
		"result[0] && 1 < result[0]":      "a side of && is a number",
		"result[0]?.a > 1":                "a Check cannot compute result[0]?.a",
		"result | filter(# > 1)":          "filter is not known",
		"len(result, 1) > 0":              "len has 2 arguments",
		"result[0] matches '^a'":          "a Check has no regular expressions: use contains, startsWith or endsWith",
		"let x = 1; x < result[0]":        "a Check cannot compute let x = 1; x < result[0]",
	} {
		if got, err := condition.Parse(expr, sample); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, %v\nwant %s", expr, got, err, want)
		}
	}
}

func TestBadValuesAreNotGood(t *testing.T) {
	for _, c := range []struct{ good, bad, want string }{
		{"result[0] >= 0.9", "result[0] < 0.5", "result >= 0.9"},
		{"result[0] < 5", "result[0] >= 5", "result < 5.0"},
		{"result[0] <= 5", "result[0] >= 5", "result <= 5.0 && !(result >= 5.0)"},
		{"result[0] >= 0.5", "result[0] < 0.9", "result >= 0.5 && !(result < 0.9)"},
		{"result[0] == 1", "result[0] != 1", "result == 1.0"},
		{"result[0] < 5", "result[0] < 1", "result < 5.0 && !(result < 1.0)"},
		{"result[0] < 5 || result[0] > 9", "isInf(result[0])",
			`(result < 5.0 || result > 9.0) && !(result in [double("Infinity"), double("-Infinity")])`},
	} {
		good, err := condition.Parse(c.good, sample)
		if err != nil {
			t.Fatal(err)
		}
		bad, err := condition.Parse(c.bad, sample)
		if err != nil {
			t.Fatal(err)
		}
		got, err := condition.But(good, bad)
		if err != nil || got != c.want {
			t.Errorf("%s, but %s: got %s, %v\nwant %s", c.good, c.bad, got, err, c.want)
		}
		both := program(t, "("+got+") && ("+bad.CEL+")")
		for _, value := range []float64{-1, 0, 0.5, 0.7, 0.9, 1, 3, 5, 7, 9, 11, math.Inf(1)} {
			if out, _, err := both.Eval(map[string]any{"result": value}); err != nil || out.Value() != false {
				t.Errorf("%s, but %s: %v has both, %v", c.good, c.bad, value, err)
			}
		}
	}
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	var out any
	if json.Unmarshal([]byte(text), &out) != nil {
		return text
	}
	return out
}

func FuzzParse(f *testing.F) {
	short := func(string) (as, usually string) { return "short", "" }
	samples, responses := sample, response
	samples.Argument, responses.Argument = short, short
	f.Add("len(result) > 0 && result[0] >= {{args.most}}")
	f.Add("all(result.a, {asFloat(.b) in [1, 2]}) ? result == 'x' : not isNil(result)")
	f.Fuzz(func(t *testing.T, expr string) {
		for _, operand := range []condition.Operand{samples, responses} {
			if got, err := condition.Parse(expr, operand); err == nil && len(got.CEL) < 500 {
				compiled(t, got.CEL)
			}
		}
	})
}
