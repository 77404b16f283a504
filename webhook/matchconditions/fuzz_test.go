// SPDX-License-Identifier: Apache-2.0

package matchconditions_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/matchconditions"
)

// FuzzConditions compiles and evaluates expressions of any kind: each has a result, the same for each
// compilation.
func FuzzConditions(f *testing.F) {
	for _, seed := range []string{
		`request.userInfo.username == "dev"`, `"sre" in request.userInfo.groups`, `object.metadata.?labels[?"tier"].orValue("") == "x"`,
		`oldObject == null || object.spec != oldObject.spec`, `object.spec.template.values.list.exists(x, x == "a")`, costly,
		`[1, 2].map(x, [1, 2].map(y, [x, y])).size() > 1`, `"a".matches("(a+)+$")`, `quantity("1Ki").isGreaterThan(quantity("1"))`,
		`cel.bind(x, request, x.dryRun)`, `1 / 0 == 1`, `9223372036854775807 + 1 > 0`, `dyn(object)`, ``, "\x00", `"a" * 3`,
		`((((((((true))))))))`,
		`url("https://a/b").getHost() == "a"`, `"%d".format([1]) == "1"`, `duration("1h") < duration("2h")`,
	} {
		f.Add(seed)
	}
	path := field.NewPath("spec", "matchConditions")
	c, another := matchconditions.New(), matchconditions.New() // making one takes longer than asking it
	f.Fuzz(func(t *testing.T, expression string) {
		req := ask.Update("dev", ask.Application(ask.Version("0.0.2")), ask.Application())
		match := c.Match(t.Context(), req)(named(expression))
		c.Validate(path, named(expression)) // what it refuses may be asked all the same: it is newer than what others know
		if another.Match(t.Context(), req)(named(expression)) != match {
			t.Fatalf("%q matches: %v, and the second time %v", expression, match, !match)
		}
	})
}
