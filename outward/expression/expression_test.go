// SPDX-License-Identifier: Apache-2.0

package expression_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/cel/environment"

	"shipper.dev/shipper/outward/expression"
)

// message is the text of an error, or empty.
func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestCheck(t *testing.T) {
	cluster := expression.Inputs{Queries: []string{"new", "old"}, Args: []string{"slack", "namespace", "release"}}
	fleet := expression.Inputs{Queries: []string{"new"}, List: true}
	http := expression.Inputs{HTTP: true, Args: []string{"version"}}
	const (
		number   = "does not compile: 1:5: found no matching overload for "
		isList   = "; new is a list: use new.max(), new.min() or new.sum()"
		noFields = "does not compile: 1:5: undefined field "
	)
	for _, tc := range []struct {
		in         expression.Inputs
		text, want string
	}{
		{cluster, "new <= old", ""},
		{cluster, "new <= 1 && new <= old * 1.1 + double(args.slack)", ""},
		{cluster, `args.namespace == "shop" && args.release != ""`, ""},
		{cluster, "new <= ols", "does not compile: 1:8: undeclared reference to 'ols'"},
		{cluster, "new", "must be bool, is double"},
		{cluster, `args.slak == "1"`, noFields + "'slak'"},
		{cluster, "response.status == 200", "does not compile: 1:1: undeclared reference to 'response'"},
		{cluster, "object.metadata == null", "does not compile: 1:1: undeclared reference to 'object'"},
		{cluster, "new == 0", number + "'_==_' applied to '(double, int)'; queries give doubles: write 0.0"},
		{cluster, "\nnew * 2 < 1.0", "does not compile: 2:5: found no matching overload for '_*_' applied to '(double, int)'" +
			"; queries give doubles: write 2.0"},
		{cluster, "a + b + c + d", "does not compile: 1:1: undeclared reference to 'a'; 1:5: undeclared reference to 'b'; " +
			"1:9: undeclared reference to 'c'"},
		{fleet, "new.max() < 1 && new.min() >= 0.0 && new.sum() / double(new.size()) < 0.5", ""},
		{fleet, "new.all(n, n < 1)", ""},
		{fleet, "new < 1", number + "'_<_' applied to '(list(double), int)'" + isList},
		{fleet, "new == 1.0", number + "'_==_' applied to '(list(double), double)'" + isList},
		{fleet, "new", "must be bool, is list(double)"},
		{http, `response.status == 200 && response.json.version == args.version`, ""},
		{http, `response.json.latencies.max() < 3`, ""},
		{http, "response.json", "must be bool, is dyn: compare it, as in response.json.ok == true"},
		{http, "response.statos == 200", "does not compile: 1:9: undefined field 'statos'"},
		{http, `response.json.a.matches("x")`, "calls matches: regular expressions are not available here: " +
			"use startsWith, endsWith or contains"},
		{http, `response.json.a.indexOf("x") > 0`, "calls indexOf, which is not available here: docs/checks.md lists the functions"},
		{http, `response.json.a == response.json.b`, "compares lists, maps or dyn(…): compare texts, numbers, booleans or times"},
	} {
		if got := message(expression.Check(t.Context(), tc.text, tc.in, environment.NewExpressions)); got != tc.want {
			t.Errorf("%s gives %q, want %q", tc.text, got, tc.want)
		}
	}
}

// result is what an evaluation gave.
type result struct {
	Value bool
	Err   string
}

func eval(t *testing.T, all *expression.Cache, text string, in expression.Inputs, v expression.Values) result {
	t.Helper()
	program, err := all.Compile(t.Context(), text, in)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	value, err := program.Eval(t.Context(), v)
	return result{value, message(err)}
}

func TestEvalOfQueries(t *testing.T) {
	all := expression.NewCache()
	v := expression.Values{
		Numbers: map[string]float64{"new": 0.02, "old": 0.01}, Lists: map[string][]float64{"new": {0.5, 2, 0.25}, "old": {}},
		Args: map[string]string{"slack": "0.05"},
	}
	one := expression.Inputs{Queries: []string{"new", "old"}, Args: []string{"slack", "absent"}}
	many := expression.Inputs{Queries: []string{"new", "old"}, List: true}
	for _, tc := range []struct {
		in   expression.Inputs
		text string
		want result
	}{
		{one, "new <= old", result{}},
		{one, "new <= old + double(args.slack)", result{Value: true}},
		{one, `args.absent == ""`, result{Err: "cannot be evaluated: no such key: absent"}},
		{many, "new.max() == 2.0 && new.min() == 0.25 && new.sum() == 2.75", result{Value: true}},
		{many, "old.max() < 1.0", result{Err: "cannot be evaluated: max called on empty list"}},
		{expression.Inputs{Queries: []string{"third"}}, "third < 1", result{Err: "cannot be evaluated: no such attribute(s): third"}},
	} {
		for range 2 { // the second is cached
			if diff := cmp.Diff(tc.want, eval(t, all, tc.text, tc.in, v)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.text, diff)
			}
		}
	}
}

func TestEvalOfAResponse(t *testing.T) {
	all := expression.NewCache()
	in := expression.Inputs{HTTP: true, Args: []string{"version"}}
	var content any
	if err := json.Unmarshal([]byte(`{"ok": true, "version": "1.2", "n": 3, "list": [1.5, 2], "none": null}`), &content); err != nil {
		t.Fatal(err)
	}
	v := expression.Values{Status: 200, JSON: content, Args: map[string]string{"version": "1.2"}}
	for text, want := range map[string]result{
		`response.status == 200 && response.json.ok == true`:      {Value: true},
		`response.json.version == args.version`:                   {Value: true},
		`response.json.n == 3 && response.json.n < 3.5`:           {Value: true},
		`response.json.list.max() < 3 && 2 in response.json.list`: {Value: true},
		`response.json.none == null`:                              {Value: true},
		`has(response.json.absent) && response.json.absent == 1`:  {},
		`response.json.absent == 1`:                               {Err: "cannot be evaluated: no such key: absent"},
		`response.json.list == 1`:                                 {},
		`response.json.version < 2`:                               {Err: "cannot be evaluated: no such overload"},
	} {
		if diff := cmp.Diff(want, eval(t, all, text, in, v)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	if diff := cmp.Diff(result{Value: true}, eval(t, all, `response.json == null`, in, expression.Values{})); diff != "" {
		t.Errorf("no JSON (-want +got):\n%s", diff)
	}
}

func TestNaNAndInfinityCompareAsIEEE754(t *testing.T) {
	all := expression.NewCache()
	in := expression.Inputs{Queries: []string{"x"}}
	type row struct{ NaN, Inf, Zero bool }
	for text, want := range map[string]row{
		`x < 1`:                {Zero: true},
		`x > 1`:                {Inf: true},
		`x == x`:               {Inf: true, Zero: true},
		`x != x`:               {NaN: true},
		`1.0 / x > 1`:          {Zero: true},
		`[x, 1.0].max() < 2`:   {Zero: true},
		`[1.0, x].max() < 2`:   {NaN: true, Zero: true},
		`[1.0, x].sum() < 2`:   {Zero: true},
		`!(x > 1) && !(x < 1)`: {NaN: true},
	} {
		of := func(x float64) bool {
			got := eval(t, all, text, in, expression.Values{Numbers: map[string]float64{"x": x}})
			if got.Err != "" {
				t.Errorf("%s of %v: %s", text, x, got.Err)
			}
			return got.Value
		}
		if diff := cmp.Diff(want, row{of(math.NaN()), of(math.Inf(1)), of(0)}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestTheSameTextWithOtherInputsIsCompiledAnew(t *testing.T) {
	all := expression.NewCache()
	const text = `args.new == "1" || new > 0`
	in := expression.Inputs{Queries: []string{"new", "old"}, Args: []string{"new", "a"}}
	first, err := all.Compile(t.Context(), text, in)
	if err != nil {
		t.Fatal(err)
	}
	same, err := all.Compile(t.Context(), text, expression.Inputs{Queries: []string{"old", "new"}, Args: []string{"a", "new"}})
	if err != nil || same != first {
		t.Errorf("the same inputs in another order were compiled again: %v", err)
	}
	in.List = true
	if _, err := all.Compile(t.Context(), text, in); err == nil || !strings.Contains(err.Error(), "new is a list") {
		t.Errorf("a list gives %v", err)
	}
}

func TestAnExpressionWaitsForAtMostItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := expression.Check(ctx, "true", expression.Inputs{}, environment.NewExpressions); !errors.Is(err, expression.ErrBusy) {
		t.Errorf("checked without a slot: %v", err)
	}
	if _, err := expression.NewCache().Compile(ctx, "true", expression.Inputs{}); !errors.Is(err, expression.ErrBusy) {
		t.Errorf("compiled without a slot: %v", err)
	}
}
