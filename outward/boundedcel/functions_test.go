// SPDX-License-Identifier: Apache-2.0

package boundedcel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"shipper.dev/shipper/outward/boundedcel"
)

func anyType(*cel.Type) error { return nil }

// TestOnlyListedFunctionsCompile compiles a call of each function with each list of functions.
func TestOnlyListedFunctionsCompile(t *testing.T) {
	calls := map[string]string{
		"contains": `"a".contains("b")`, "endsWith": `"a".endsWith("b")`, "lowerAscii": `"a".lowerAscii()`, "size": `"a".size()`,
		"startsWith": `"a".startsWith("b")`, "trim": `"a".trim()`, "upperAscii": `"a".upperAscii()`, "charAt": `"a".charAt(0)`,
		"indexOf": `"a".indexOf("b")`, "lastIndexOf": `"a".lastIndexOf("b")`, "replace": `"a".replace("b", "c")`,
		"split": `"a".split("b")`, "substring": `"a".substring(0)`, "max": `[1].max()`, "min": `[1].min()`, "sum": `[1].sum()`,
	}
	for _, listed := range [][]string{boundedcel.Texts, boundedcel.Rewriting, boundedcel.Aggregations} {
		l := &boundedcel.Language{Functions: listed, Page: "docs/x.md", Accept: anyType}
		for name, call := range calls {
			_, err := l.Compile(t.Context(), call, environment.NewExpressions, l.Environment)
			want := fmt.Sprintf("calls %s, which is not available here: docs/x.md lists the functions", name)
			switch {
			case slices.Contains(listed, name) && err != nil:
				t.Errorf("%s of %v: %v", call, listed, err)
			case !slices.Contains(listed, name) && (err == nil || err.Error() != want):
				t.Errorf("%s of %v gives %v, want %q", call, listed, err, want)
			}
		}
	}
}

func TestAggregationsOfLongTextsCost(t *testing.T) {
	l := &boundedcel.Language{
		Functions: slices.Concat(boundedcel.Operators, boundedcel.Aggregations), Accept: anyType,
		Variables: []cel.EnvOption{cel.Variable("texts", cel.ListType(cel.StringType))},
	}
	program, err := l.Compile(t.Context(), `texts.max() == ""`, environment.NewExpressions, l.Environment)
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]bool{1: true, 100: false} {
		texts := slices.Repeat([]string{strings.Repeat("a", 60<<10)}, n)
		if _, _, err := program.Eval(t.Context(), map[string]any{"texts": texts}); (err == nil) != want {
			t.Errorf("%d texts give %v", n, err)
		}
	}
}
