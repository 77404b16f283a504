// SPDX-License-Identifier: Apache-2.0

package body_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/outward/body"
)

// maxAllocated bounds what one expression may allocate: less than twice the budget in texts and lists, and the compiler.
const maxAllocated = 32 << 20

// allocated is the number of bytes that f allocates. No other goroutine of this test allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// times is text, n times.
func times(text string, n int) string { return strings.Repeat(text, n) }

func TestRegularExpressionsAreRefusedBeforeTheyAreCompiled(t *testing.T) {
	if err := body.Check(t.Context(), `"warm"`); err != nil {
		t.Fatal(err)
	}
	for name, expression := range map[string]string{
		"matches": `string("x".matches("` + times("<a{1000}", 400) + `1"))`,
		"find":    `"x".find("` + times("<a{1000}", 400) + `2")`,
		"findAll": `"x".findAll("` + times("<a{1000}", 400) + `3")[0]`,
	} {
		for _, expression := range []string{expression, `{"a": [1].map(i, ` + expression + `)}`} {
			want := "calls " + name + ": regular expressions are not available here"
			got := allocated(func() {
				if err := body.Check(t.Context(), expression); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s gives %v, want %q", name, err, want)
				}
				if _, err := body.New().Of(t.Context(), expression, body.Event{}); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s gives %v, want %q", name, err, want)
				}
			})
			if got > 4<<20 {
				t.Errorf("%s allocates %d bytes", name, got)
			}
		}
	}
	// The pattern is known only when the expression is evaluated.
	const loop = `[1,2,3].all(i, !"x".matches("a{1000}" + string(i))) ? "a" : "b"`
	if err := body.Check(t.Context(), loop); err == nil || !strings.Contains(err.Error(), "calls matches") {
		t.Errorf("a pattern that is computed gives %v", err)
	}
}

func TestFunctionsWithoutABoundAreRefused(t *testing.T) {
	shared := `[dyn(1)]` + times(`.map(a, dyn([a, a]))`, 40)
	for expression, want := range map[string]string{
		`"%.999999999f".format([1.0])`:                              "calls format, which is not available here",
		`string(lists.range(999999999).size())`:                     "calls range,",
		`["a", "b"].join("c")`:                                      "calls join,",
		`[[1]].flatten().size() > 0 ? "a" : "b"`:                    "calls flatten,",
		`sets.contains([1], [2]) ? "a" : "b"`:                       "calls sets.contains,",
		`cidr("10.0.0.0/8").containsIP("10.0.0.1") ? "a" : "b"`:     "calls cidr,",
		`url("https://a").getHost()`:                                "calls url,",
		`"x".replace("x", event.message)`:                           "calls replace with a replacement",
		`"x".replace("x", "` + times("x", 33) + `")`:                "calls replace with a replacement",
		`{"a": google.protobuf.Struct{fields: {}}}`:                 "objects with a type",
		`shipper.Event{message: "a"}.message`:                       "objects with a type",
		shared + ` == ` + shared + ` ? "a" : "b"`:                   "compares lists, maps or dyn(…)",
		shared + `.map(a, a != a)[0] ? "a" : "b"`:                   "compares lists, maps or dyn(…)",
		shared + `.map(a, a in [a])[0] ? "a" : "b"`:                 "searches for a list",
		`dyn([[1]]).indexOf([1]) > 0 ? "a" : "b"`:                   "searches for",
		`event.?message.orValue("a")`:                               "calls ",
		`[1].transformMap(i, v, v)`:                                 "calls cel.@mapInsert",
		`event.message.split("")[0].format([]).lowerAscii().trim()`: "calls format,",
	} {
		if err := body.Check(t.Context(), expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s gives %v, want %q", expression, err, want)
		}
	}
	for _, expression := range []string{
		`event.message.replace("\n", " ").split(" ").filter(w, w != "" && w in ["a", "b"])[0].upperAscii()`,
		`event.message.indexOf("a") >= 0 && event.user != "" && event.time > timestamp("2026-01-01T00:00:00Z") ? "a" : "b"`,
		`[1, 2].exists_one(i, i == event.step) ? event.message.substring(0, 1) : string(event.time.getHours("Europe/Paris"))`,
		`{"blocks": [{"text": event.message}] + (event.user == "" ? [] : [{"text": event.user}])}`,
	} {
		if err := body.Check(t.Context(), expression); err != nil {
			t.Errorf("%s: %v", expression, err)
		}
	}
}

func TestGrowingTextsAreBounded(t *testing.T) {
	e := body.Event{Message: times("a", 32<<10)}
	long := `"` + times("x", 1000) + `"`
	fill := `[0,1,2,3,4,5,6,7,8,9].map(a, `
	all := body.New()
	for name, expression := range map[string]string{
		"doubled by replace":       `"x"` + times(`.replace("x", "xx")`, 40),
		"doubled by empty replace": `"x"` + times(`.replace("", "yy")`, 40),
		"grown by replace":         `"x"` + times(`.replace("x", "`+times("x", 32)+`")`, 10),
		"doubled by +":             `["x"]` + times(`.map(a, a + a)`, 40) + `[0]`,
		"doubled by + of dyn":      `string([dyn("x")]` + times(`.map(a, a + a)`, 40) + `[0])`,
		"many large texts":         `{"x": ` + times(fill, 3) + `event.message + "x"` + times(`)`, 3) + `}`,
		"many large dyn":           `{"x": ` + times(fill, 3) + `dyn(event.message) + dyn("x")` + times(`)`, 3) + `}`,
		"many splits":              `{"x": ` + times(fill, 3) + `event.message.split("")` + times(`)`, 3) + `}`,
		"few splits":               `{"x": [0,1].map(a, ` + long + `.split("").map(b, ` + long + `.split("")))}`,
		"searches": times(fill, 3) + `event.message.indexOf(event.message.substring(9000) + "b")` +
			times(`)`, 3) + `.size() > 0 ? "a" : "b"`,
	} {
		got := allocated(func() {
			if value, err := all.Of(t.Context(), expression, e); err == nil || !strings.Contains(err.Error(), "actual cost limit exceeded") {
				t.Errorf("%s gives %.40v, %v", name, value, err)
			}
		})
		if got > maxAllocated {
			t.Errorf("%s allocates %d bytes", name, got)
		}
	}
}

func TestGrowingListsAreBounded(t *testing.T) {
	all := body.New()
	for name, expression := range map[string]string{
		"lists added to themselves":     `[[1]]` + times(`.map(a, a + a)`, 40) + `[0].size() > 0 ? "a" : "b"`,
		"dyn lists added to themselves": `[dyn([1])]` + times(`.map(a, a + a)`, 40) + `.size() > 0 ? "a" : "b"`,
	} {
		got := allocated(func() {
			if value, err := all.Of(t.Context(), expression, body.Event{}); err == nil || !strings.Contains(err.Error(), "cost limit exceeded") {
				t.Errorf("%s gives %.40v, %v", name, value, err)
			}
		})
		if got > maxAllocated {
			t.Errorf("%s allocates %d bytes", name, got)
		}
	}
}

func TestAnExpressionWaitsForAtMostItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := body.Check(ctx, `"a"`); !errors.Is(err, body.ErrBusy) {
		t.Errorf("checked without a slot: %v", err)
	}
	if _, err := body.New().Of(ctx, fmt.Sprintf("%q", t.Name()), body.Event{}); !errors.Is(err, body.ErrBusy) {
		t.Errorf("evaluated without a slot: %v", err)
	}
}

func TestResultsThatShareTheirPartsAreBounded(t *testing.T) {
	all := body.New()
	e := body.Event{Message: times("a", 1<<10)}
	for name, tc := range map[string]struct{ expression, want string }{
		"lists of a list":        {`{"x": [[dyn(1)]]` + times(`.map(a, dyn([a, a]))`, 24) + `[0]}`, "more than 4000 values"},
		"lists of an empty list": {`{"x": [dyn([])]` + times(`.map(a, dyn([a, a]))`, 24) + `[0]}`, "more than 4000 values"},
		"maps of a map":          {`{"x": [{"a": dyn(1)}]` + times(`.map(a, {"a": dyn(a), "b": dyn(a)})`, 24) + `[0]}`, "more than 4000 values"},
		"a list of many lists":   {`{"x": [0,1,2,3,4,5,6,7,8,9].map(a, [0,1,2,3,4,5,6,7,8,9].map(b, [` + times("1,", 50) + `1]))}`, "values"},
		"lists of a text":        {`{"x": [event.message].map(a, dyn([` + times("a,", 100) + `a]))[0]}`, "longer than 64 KiB"},
		"keys that are long":     {`{"x": [{event.message: 1}].map(a, dyn([` + times("a,", 100) + `a]))[0]}`, "longer than 64 KiB"},
		"a deep list":            {`{"x": ` + times("[", 33) + times("]", 33) + `}`, "deeper than 32"},
		"a list added to itself": {`{"x": [[1]]` + times(`.map(a, a + a)`, 24) + `[0]}`, "cost limit exceeded"},
	} {
		got := allocated(func() {
			if value, err := all.Of(t.Context(), tc.expression, e); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s gives %.40v, %v, want %q", name, value, err, tc.want)
			}
		})
		if got > maxAllocated {
			t.Errorf("%s allocates %d bytes", name, got)
		}
	}
	want := []any{[]any{1.0, 1.0}, []any{1.0, 1.0}}
	got, err := all.Of(t.Context(), `{"x": [1].map(a, [a, a]).map(a, [a, a])[0]}`, e)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"x": want}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestValuesAreThoseOfJSON(t *testing.T) {
	const expression = `{"big": dyn(9007199254740992), "exact": dyn(-9007199254740991), "uint": dyn(3u), ` +
		`"huge": dyn(18446744073709551615u), ` +
		`"bytes": dyn(b"ab"), "took": dyn(duration("90s")), "yes": dyn(true), "empty": dyn([]), "none": dyn({})}`
	want := map[string]any{
		"big": "9007199254740992", "exact": -9007199254740991.0, "uint": 3.0, "huge": "18446744073709551615",
		"bytes": "YWI=", "took": "90s", "yes": true, "empty": []any{}, "none": map[string]any{},
	}
	got, err := body.New().Of(t.Context(), expression, body.Event{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for expression, want := range map[string]string{
		`{"a": double("NaN")}`: "is no JSON: a number is NaN",
		`{"a": 1.0 / 0.0}`:     "is no JSON: a number is +Inf",
		`{"a": [string]}`:      "is no JSON: a value is type",
	} {
		if _, err := body.New().Of(t.Context(), expression, body.Event{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want %q", expression, err, want)
		}
	}
}
