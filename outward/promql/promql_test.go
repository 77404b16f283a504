// SPDX-License-Identifier: Apache-2.0

package promql_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"shipper.dev/shipper/outward/promql"
)

// message is the text of an error, or empty.
func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestParse(t *testing.T) {
	for query, want := range map[string]string{
		`sum(rate(http_requests_total{code=~"5.."}[5m])) / sum(rate(http_requests_total[5m]))`: "",
		`1`:                         "",
		`time() - 5`:                "",
		`{"my.metric"}`:             "",
		`sum(rate(a[5m])))`:         "1:18: parse error: unexpected right parenthesis ')'",
		"sum(\na[5m":                "2:5: parse error: unclosed left parenthesis",
		`a[5m]`:                     "gives a range vector: wrap it, as in rate(…)",
		`a[5m:1m]`:                  "gives a range vector: wrap it, as in rate(…)",
		`"text"`:                    "gives a string: a query must give a number",
		``:                          "unknown position: parse error: no expression found in input",
		`a{b=~"("}`:                 "1:3: parse error: error parsing regexp: missing closing ): `(`",
		`info(a)`:                   `1:1: parse error: function "info" is not enabled`,
		`a{b=~"` + long(17_000):     "is longer than 16 KiB",
		`a{"` + long(9_000) + `"="`: "1:9006: parse error: unterminated quoted string",
	} {
		for range 2 { // a valid one is cached then
			got := message(promql.Parse(query))
			if !strings.HasPrefix(got, want) || (want == "") != (got == "") || len(got) > 300 {
				t.Errorf("%.80s gives %q, want %q", query, got, want)
			}
		}
	}
}

func long(n int) string { return strings.Repeat("x", n) }

func TestLargeRegularExpressionsAreRefusedBeforeTheyAreCompiled(t *testing.T) {
	const want = "the regular expressions are too large"
	for sentence, query := range map[string]string{
		"repeated characters":    `a{b=~"` + strings.Repeat("<a{1000}", 400) + `"}`,
		"a repeated group":       `a{b!~"(` + long(400) + `){1000}"}`,
		"in single quotes":       `a{b=~'(` + long(400) + `){1000}'}`,
		"in back quotes":         "a{b=~`(" + long(400) + "){1000}`}",
		"escaped":                `a{b=~"(` + strings.Repeat(`\x61`, 400) + `){1000}"}`,
		"after a comment":        "a{b=~ # \"a\"\n \"(" + long(400) + `){1000}"}`,
		"of a quoted label":      `a{"b c"=~"(` + long(400) + `){1000}"}`,
		"many that are smaller":  "a{" + strings.Repeat(`b=~"x{900}",`, 30) + "}",
		"classes of Unicode":     `a{b=~"` + strings.Repeat(`\\pL`, 3000) + `"}`,
		"in a parameter":         `topk(scalar(a{b=~"(` + long(400) + `){1000}"}), a)`,
		"in a query that is bad": `a{b=~"(` + long(400) + `){1000}"}))`,
	} {
		got := allocated(func() {
			if err := promql.Parse(query); err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s gives %.100q, want %q", sentence, message(err), want)
			}
		})
		if got > 64<<20 {
			t.Errorf("%s allocates %d bytes", sentence, got)
		}
	}
	pods := `a{pod=~"` + strings.Repeat("web-5f6d8c-abcde|", 900) + `x"}`
	if err := promql.Parse(pods); err != nil {
		t.Errorf("the names of 900 Pods: %v", err)
	}
}

// The parser needs a second for 16,000 minus signs.
func TestQueriesOfManyOperatorsAreRefusedBeforeTheyAreParsed(t *testing.T) {
	for sentence, query := range map[string]string{
		"signs":           strings.Repeat("-", 16_000) + "a",
		"sums":            strings.Repeat("a+", 8_000) + "a",
		"powers":          strings.Repeat("a^", 8_000) + "a",
		"parentheses":     strings.Repeat("(", 8_000) + "a" + strings.Repeat(")", 8_000),
		"aggregations":    strings.Repeat("sum(", 3_000) + "a" + strings.Repeat(")", 3_000),
		"set operators":   strings.Repeat("a or ", 3_000) + "a",
		"regular matches": "a{" + strings.Repeat(`b=~"x",`, 2_000) + "}",
	} {
		got := allocated(func() {
			if err := promql.Parse(query); err == nil || !strings.HasSuffix(err.Error(), "a query may have 500 operators and parentheses") {
				t.Errorf("%s gives %.100q", sentence, message(err))
			}
		})
		if got > 1<<20 {
			t.Errorf("%s allocates %d bytes", sentence, got)
		}
	}
	for _, query := range []string{strings.Repeat("-", 500) + "a", strings.Repeat("(", 500) + "a" + strings.Repeat(")", 500)} {
		if err := promql.Parse(query); err != nil {
			t.Errorf("%.10s: %v", query, err)
		}
	}
}

// allocated is the number of bytes that f allocates. No other goroutine of this test allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// result is what Enforce gave.
type result struct{ query, err string }

func TestEnforceRestrictsEverySelector(t *testing.T) {
	const only = `, and may select only namespace="a"`
	for query, want := range map[string]result{
		`up`:               {query: `up{namespace="a"}`},
		`1 + time()`:       {query: `1 + time()`},
		`{__name__=~".+"}`: {query: `{__name__=~".+",namespace="a"}`},
		`a or b unless c and d`: {
			query: `a{namespace="a"} or b{namespace="a"} unless c{namespace="a"} and d{namespace="a"}`},
		`a * on (namespace) group_left ("x.y") b`: {
			query: `a{namespace="a"} * on (namespace) group_left ("x.y") b{namespace="a"}`},
		`max_over_time(rate(a[5m])[1h:1m] @ end() offset 5m)`: {
			query: `max_over_time(rate(a{namespace="a"}[5m])[1h:1m] @ end() offset 5m)`},
		`a @ 1 offset -5m`:        {query: `a{namespace="a"} @ 1.000 offset -5m`},
		`absent(a)`:               {query: `absent(a{namespace="a"})`},
		`absent_over_time(a[5m])`: {query: `absent_over_time(a{namespace="a"}[5m])`},
		`-(a)`:                    {query: `-(a{namespace="a"})`},
		// Parameters of aggregations have selectors too: prom-label-proxy v0.11.1 leaves them out.
		`topk(scalar(s), a)`:                    {query: `topk(scalar(s{namespace="a"}), a{namespace="a"})`},
		`topk(scalar(s{namespace="b"}), a)`:     {err: `selects namespace="b"` + only},
		`quantile(scalar(s{namespace="b"}), a)`: {err: `selects namespace="b"` + only},
		// The answer may carry another value of the label, but comes from the tenant's series.
		`label_replace(a, "namespace", "b", "", "")`: {query: `label_replace(a{namespace="a"}, "namespace", "b", "", "")`},
		`count_values("namespace", a)`:               {query: `count_values("namespace", a{namespace="a"})`},
		// Matchers of the label itself.
		`a{namespace="a"}`:                       {query: `a{namespace="a"}`},
		`a{namespace=~"a|b"}`:                    {query: `a{namespace="a"}`},
		`a{namespace!="b"}`:                      {query: `a{namespace="a"}`},
		`a{namespace!~"b.*"}`:                    {query: `a{namespace="a"}`},
		`a{"namespace"=~".*", namespace!=""}`:    {query: `a{namespace="a"}`},
		`a{namespace="b"}`:                       {err: `selects namespace="b"` + only},
		`a{namespace=""}`:                        {err: `selects namespace=""` + only},
		`a{namespace!="a"}`:                      {err: `selects namespace!="a"` + only},
		`a{namespace=~"b|c"}`:                    {err: `selects namespace=~"b|c"` + only},
		`a{namespace!~"a|b"}`:                    {err: `selects namespace!~"a|b"` + only},
		`a{"namespace"="b"}`:                     {err: `selects namespace="b"` + only},
		"a{\"name\\u0073pace\"=\"b\"}":           {err: `selects namespace="b"` + only},
		`a{namespace="a", namespace="b"}`:        {err: `selects namespace="b"` + only},
		`absent(a{namespace="b"})`:               {err: `selects namespace="b"` + only},
		`a or b{namespace="b"}`:                  {err: `selects namespace="b"` + only},
		`rate(a{namespace="b"}[5m])`:             {err: `selects namespace="b"` + only},
		`sum_over_time(a{namespace="b"}[1h:1m])`: {err: `selects namespace="b"` + only},
		// Names that the printer could write as syntax.
		`{"my.metric", "x.y"="z"}`:            {query: `{"x.y"="z",__name__="my.metric",namespace="a"}`},
		`{"s{namespace=\"b\"} or x"}`:         {query: `{__name__="s{namespace=\"b\"} or x",namespace="a"}`},
		`{"x #"}`:                             {query: `{__name__="x #",namespace="a"}`},
		`{"x", "y\"} or b{\"z"="1"}`:          {query: `{"y\"} or b{\"z"="1",__name__="x",namespace="a"}`},
		`a{x="\xff\"} or b{"}`:                {query: `a{namespace="a",x="\xff\"} or b{"}`},
		`sum by ("x) or (b) or (y") (a)`:      {query: `sum by ("x) or (b) or (y") (a{namespace="a"})`},
		`label_join(a, "x", ") or b #", "y")`: {query: `label_join(a{namespace="a"}, "x", ") or b #", "y")`},
		// Experimental syntax has selectors of its own.
		`info(a, {namespace="b"})`: {err: `1:1: parse error: function "info" is not enabled`},
		`a offset (1 + 2)`:         {err: `1:11: parse error: experimental duration expression is not enabled`},
		`a[5m]`:                    {err: "gives a range vector: wrap it, as in rate(…)"},
		`a))`:                      {err: "1:3: parse error: unexpected right parenthesis ')'"},
	} {
		got, err := promql.Enforce(query, "namespace", "a")
		if (result{got, message(err)}) != want {
			t.Errorf("%s gives\n%q, %q, want\n%q, %q", query, got, message(err), want.query, want.err)
		}
		if err == nil {
			if leak := leaks(t, got); leak != "" {
				t.Errorf("%s gives %s, where %s is not restricted", query, got, leak)
			}
		}
	}
}

// leaks is a selector of a query that series of other tenants match, or empty. It reads the text as Prometheus does.
func leaks(t *testing.T, query string) string {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	out := ""
	for open := []parser.Node{expr}; len(open) > 0; {
		node := open[0]
		open = append(open[1:], parser.Children(node)...)
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			continue
		}
		for _, other := range []string{"", "b", "ab", "x"} {
			matches := true
			for _, m := range selector.LabelMatchers {
				if m.Name == "namespace" {
					matches = matches && m.Matches(other)
				}
			}
			if matches {
				out = fmt.Sprintf("%s of %q", selector, other)
			}
		}
	}
	return out
}

func TestValuesAreQuoted(t *testing.T) {
	for _, value := range []string{`b"} or up{x="`, "b\\", "b\n", "ü", "b' #"} {
		got, err := promql.Enforce("up", "tenant_id", value)
		want := "up{" + (&labels.Matcher{Type: labels.MatchEqual, Name: "tenant_id", Value: value}).String() + "}"
		if err != nil || got != want {
			t.Errorf("%q gives %q, %v, want %q", value, got, err, want)
		}
	}
}

func TestALabelThatSelectsNoTenantIsRefused(t *testing.T) {
	for label, value := range map[string]string{
		"": "a", "__name__": "a", "name space": "a", "namespace": "", `x"}or up{y`: "a",
	} {
		if got, err := promql.Enforce("up", label, value); err == nil {
			t.Errorf("%s=%q gives %s", label, value, got)
		}
	}
}
