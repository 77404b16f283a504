// SPDX-License-Identifier: Apache-2.0

package expression_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/cel/environment"

	"shipper.dev/shipper/outward/expression"
)

// maxAllocated bounds what one evaluation may allocate, whatever the server answers.
const maxAllocated = 32 << 20

// allocated is the number of bytes that f allocates. No other goroutine of this test allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// decode decodes a JSON text.
func decode(t *testing.T, text string) any {
	t.Helper()
	var out any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestHostileJSONIsBounded(t *testing.T) {
	all := expression.NewCache()
	in := expression.Inputs{HTTP: true}
	half := strings.Repeat("a", 512<<10)
	texts := map[string]any{"a": half, "b": half[:len(half)/2] + "b", "o": map[string]any{}}
	numbers := decode(t, "["+strings.Repeat("0,", 500_000)+"0]")
	lists := decode(t, "["+strings.Repeat("[],", 300_000)+"[]]")
	deep := decode(t, strings.Repeat("[", 9000)+strings.Repeat("]", 9000))
	// Cancelled by the cost limit, or interrupted by the timeout on a slow machine.
	const over, fine = "cannot be evaluated: operation ", ""
	for sentence, tc := range map[string]struct {
		text string
		json any
		want string
	}{
		"a search of a text in a text":      {`response.json.a.contains(response.json.b)`, texts, over},
		"a text that doubles":               {`(response.json.a + response.json.a).size() > 0`, texts, over},
		"a text that is copied":             {`response.json.a.lowerAscii() == ""`, texts, over},
		"a text that is compared often":     {`[1,2,3,4,5,6,7,8,9].all(i, response.json.a != "b")`, texts, over},
		"a key that is a long text":         {`response.json.o[response.json.a] == 1`, texts, "cannot be evaluated: no such key"},
		"a sum of many numbers":             {`response.json.sum() == 0`, numbers, over},
		"a maximum of many numbers":         {`response.json.max() == 0`, numbers, over},
		"a loop over many numbers":          {`response.json.all(i, i == 0)`, numbers, over},
		"a loop in a loop":                  {`response.json.all(i, response.json.all(j, j == 0))`, numbers, over},
		"a copy of many lists":              {`response.json.map(i, [i, i]).size() > 0`, lists, over},
		"a search in many lists":            {`"a" in response.json`, lists, over},
		"a maximum of many lists":           {`response.json.max() == 0`, lists, over},
		"a deep list that is compared":      {`response.json == 1`, deep, fine},
		"a deep list that is searched":      {`1 in response.json`, deep, fine},
		"a deep list in a list":             {`[response.json, response.json].size() == 1`, deep, fine},
		"a deep list that becomes a text":   {`string(response.json) == ""`, deep, "cannot be evaluated: no such overload"},
		"a deep list that becomes a number": {`int(response.json) == 1`, deep, "cannot be evaluated: no such overload"},
	} {
		program, err := all.Compile(t.Context(), tc.text, in)
		if err != nil {
			t.Errorf("%s: %v", sentence, err)
			continue
		}
		got := allocated(func() {
			_, err = program.Eval(t.Context(), expression.Values{Status: 200, JSON: tc.json})
		})
		if text := message(err); !strings.HasPrefix(text, tc.want) || (tc.want == "") != (err == nil) || len(text) > 300 {
			t.Errorf("%s gives %.200q, want %q", sentence, text, tc.want)
		}
		if got > maxAllocated {
			t.Errorf("%s allocates %d bytes", sentence, got)
		}
	}
}

func TestFunctionsThatSeeUnboundedTextsAreRefused(t *testing.T) {
	in := expression.Inputs{HTTP: true, Queries: []string{"q"}, List: true}
	for text, want := range map[string]string{
		`response.json.a.indexOf(response.json.b) > 0`:           "calls indexOf,",
		`response.json.a.split("").size() > 0`:                   "calls split,",
		`response.json.a.replace("", "b") == ""`:                 "calls replace,",
		`"x".matches("` + strings.Repeat("<a{1000}", 100) + `")`: "calls matches:",
		`response.json.a.findAll("a").size() > 0`:                "calls findAll:",
		`"%.999999999f".format([1.0]) == ""`:                     "calls format,",
		`lists.range(999999999).size() > 0`:                      "calls range,",
		`[1, 2] == [1, 2]`:                                       "compares lists",
		`response.json == response.json`:                         "compares lists",
		`[response.json].exists(j, j in [response.json])`:        "searches for",
		`q.isSorted()`:                      "calls isSorted,",
		`url("https://a").getHost() == "a"`: "calls url,",
		`quantity("1").isInteger()`:         "calls quantity,",
		strings.Repeat("(", 2000) + "true" + strings.Repeat(")", 2000):         "does not compile",
		strings.Repeat("!", 2001) + "true":                                     "",
		`response.json` + strings.Repeat(".a", 2000) + ` == 1`:                 "does not compile",
		strings.Repeat("[1].all(x, ", 300) + "true" + strings.Repeat(")", 300): "does not compile",
	} {
		got := message(expression.Check(t.Context(), text, in, environment.NewExpressions))
		if !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("%.80s gives %.300q, want %q", text, got, want)
		}
	}
}
