// SPDX-License-Identifier: Apache-2.0

package boundedcel_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"shipper.dev/shipper/outward/boundedcel"
)

// TestErrorsQuoteNoValueFromOutside tries each function that fails with a text or a number that only the server of a check knows.
func TestErrorsQuoteNoValueFromOutside(t *testing.T) {
	l := &boundedcel.Language{
		Functions: slices.Concat(boundedcel.Operators, boundedcel.Conversions, boundedcel.Texts, boundedcel.Rewriting, boundedcel.Times,
			boundedcel.Aggregations),
		Accept:    anyType,
		Variables: []cel.EnvOption{cel.Variable("json", cel.DynType)},
	}
	const text, number = "ANSWER-17", "7712345"
	json := map[string]any{
		"text": text, "number": 7712345.5, "whole": int64(7712345), "list": []any{1.5}, "none": nil, "empty": []any{},
		"map": map[string]any{"a": 1.0}, "big": 9e300, "ok": true,
	}
	for expression, want := range map[string]string{
		`json.absent == 1`:                         "no such key: absent",
		`json["absent"] == 1`:                      "no such key: absent",
		`json.map[json.text] == 1`:                 "no such key",
		`{"a": 1}[json.text] == 1`:                 "no such key",
		`{1: 1}[json.number] == 1`:                 "no such key",
		`json[json.map] == 1`:                      "an operation failed for a value",
		`json.text.absent == 1`:                    "no such key: absent",
		`json.list[json.whole] == 1`:               "an index is out of range",
		`json.list[json.number] == 1`:              "a list has integers as indexes",
		`json.list[json.text] == 1`:                "a list has integers as indexes",
		`timestamp(json.text) == timestamp(0)`:     "a text is no timestamp",
		`timestamp(json.number) == timestamp(0)`:   "no such overload",
		`int(json.text) == 1`:                      "type conversion error from 'string' to 'int'",
		`double(json.text) == 1.0`:                 "type conversion error from 'string' to 'double'",
		`duration(json.text) == duration("1s")`:    "type conversion error from 'string' to 'google.protobuf.Duration'",
		`int(json.big) == 1`:                       "integer overflow",
		`json.whole * json.whole * json.whole > 1`: "integer overflow",
		`json.whole / 0 == 1`:                      "division by zero",
		`json.text < 1`:                            "no such overload",
		`json.text + json.whole == ""`:             "no such overload",
		`json.none.a == 1`:                         "no such key: a",
		`json.text.charAt(json.whole) == ""`:       "an index is out of range",
		`json.text.substring(json.whole) == ""`:    "an index is out of range",
		`timestamp(0).getHours(json.text) == 1`:    "an operation failed for a value",
		`json.text.all(c, c == "")`:                "an operation failed for a value",
		`json.empty.max() == 1`:                    "max called on empty list",
	} {
		program, err := l.Compile(t.Context(), expression, environment.NewExpressions, l.Environment)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		_, _, err = program.Eval(t.Context(), map[string]any{"json": json})
		switch {
		case err == nil:
			t.Errorf("%s has a value", expression)
		case strings.Contains(err.Error(), text) || strings.Contains(err.Error(), number):
			t.Errorf("%s quotes the answer: %v", expression, err)
		case err.Error() != "cannot be evaluated: "+want:
			t.Errorf("%s says %q, want %q", expression, err, want)
		}
	}
}
