// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/check"
	"shipper.dev/shipper/webhook/response"
)

// using is a strategy whose first step uses checks.
func using(checks ...shipper.StepCheck) *shipper.RolloutStrategy {
	return &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{{Name: "canary", Checks: checks}, {Name: "full on"}}}
}

func with(name string, args ...string) shipper.StepCheck {
	c := shipper.StepCheck{Check: name, Args: map[string]string{}}
	for i := 0; i < len(args); i += 2 {
		c.Args[args[i]] = args[i+1]
	}
	return c
}

func texts(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

func TestUses(t *testing.T) {
	latency := compared(argument(shipper.CheckArgument{Name: "quantile", Pattern: ".*"}), query("new", "quantile($(quantile), x)"))
	latency.Name = "latency"
	shared := compared(fleet, pass("new.max() < 1.0"))
	shared.Namespace = "shipper-checks"
	broken := compared(pass("new <= ols"))
	broken.Name = "broken" // it was written while no webhook was called
	strategyWide := using()
	strategyWide.Checks = []shipper.StepCheck{with("erors")}
	ofWave := using()
	ofWave.Waves = []shipper.Wave{
		{Name: "canary", AfterTasks: &shipper.WaveTasks{Checks: []shipper.StepCheck{with("errors"), with("erors")}}}, {Name: "rest"},
	}
	many := using()
	for i := range 101 {
		many.Steps[0].Checks = append(many.Steps[0].Checks, with("errors", "slack", fmt.Sprint(i)))
	}
	const first = "steps[0].checks[0]"
	for sentence, tc := range map[string]struct {
		strategy *shipper.RolloutStrategy
		want     []string
	}{
		"no strategy":              {},
		"a Check of the namespace": {strategy: using(with("errors"), with("errors", "slack", "0.001"))},
		"a shared Check":           {strategy: using(with("shipper-checks/errors"))},
		"a Check that there is not": {
			using(with("erors")), []string{first + `.check: Invalid value: "erors": there is no Check erors in shop; there are: broken, ` +
				`errors, latency; shared ones are named shipper-checks/NAME; apply the Check first`},
		},
		"a Check of the strategy that there is not": {
			strategyWide, []string{`checks[0].check: Invalid value: "erors": there is no Check erors in shop; there are: broken, ` +
				`errors, latency; shared ones are named shipper-checks/NAME; apply the Check first`},
		},
		"a Check of a wave that there is not": {
			ofWave, []string{`waves[0].afterTasks.checks[1].check: Invalid value: "erors": there is no Check erors in shop; there are: ` +
				`broken, errors, latency; shared ones are named shipper-checks/NAME; apply the Check first`},
		},
		"a shared Check that there is not": {
			using(with("shipper-checks/erors")), []string{first + `.check: Invalid value: "shipper-checks/erors": there is no Check erors in ` +
				`shipper-checks; there are: errors; apply the Check first`},
		},
		"a Check of another namespace": {
			using(with("other-team/errors")), []string{first + `.check: Invalid value: "other-team/errors": a Check of another namespace ` +
				`cannot be named, except those of shipper-checks`},
		},
		"a value that leaves its place": {
			using(with("errors", "slack", "0) or vector(1")), []string{first + `.args[slack]: Invalid value: "0) or vector(1": does not match ` +
				`the argument's pattern ^[A-Za-z0-9._:/-]{0,253}$`},
		},
		"an argument that is not declared, and one that is missing": {
			using(with("latency", "slak", "0")), []string{
				first + `.args[quantile]: Required value: the Check needs a value for this argument`,
				first + `.args[slak]: Invalid value: "0": no argument slak is declared; there are: quantile, slack, ` + predef,
			},
		},
		"a value of an argument that every Check has": {
			using(with("errors", "app", "x", "slak", "0")), []string{
				first + `.args[app]: Forbidden: Shipper sets app itself: leave it out`,
				first + `.args[slak]: Invalid value: "0": no argument slak is declared; there are: slack, ` + predef,
			},
		},
		"a value that is too long": {
			using(with("latency", "quantile", strings.Repeat("0", 1025))),
			[]string{first + `.args[quantile]: Too long: may not be more than 1024 bytes`},
		},
		"a query that does not parse with these arguments": {
			using(with("latency", "quantile", "0.9, 0.8, (")), []string{first + `: Invalid value: "latency": with these arguments, ` +
				`spec.prometheus.queries[new] of Check shop/latency: 1:21: parse error: unexpected "," in aggregation; this is of the query with ` +
				`its arguments: quantile(0.9, 0.8, (, x)`},
		},
		"a Check that was not validated": {
			using(with("broken")), []string{first + `: Invalid value: "broken": with these arguments, spec.pass of Check shop/broken: does ` +
				`not compile: 1:8: undeclared reference to 'ols'`},
		},
		"the same error twice": {using(with("other/x"), with("other/x")), []string{first + `.check: Invalid value: "other/x": a Check of ` +
			`another namespace cannot be named, except those of shipper-checks`}},
		"too many different ones": {many, []string{`steps[0].checks: Too many: 101: must have at most 100 items`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := ask.Know(t, ask.Grant(), compared(), latency, shared, broken)
			uses := check.NewUses(w.State, "shipper-checks")
			errs, err := uses.Validate(t.Context(), tc.strategy, "shop", nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, texts(errs)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestChecksAreFound(t *testing.T) {
	w := ask.Know(t, ask.Grant(), compared())
	uses := check.NewUses(w.State, "")
	for name, want := range map[string]bool{"errors": true, "erors": false, "shipper-checks/errors": false} {
		if got := uses.Find(t.Context(), name, "shop") != nil; got != want {
			t.Errorf("%s is found: %t", name, got)
		}
	}
	errs, err := uses.Validate(t.Context(), using(with("x")), "default", nil)
	const want = `steps[0].checks[0].check: Invalid value: "x": there is no Check x in default; there are none; apply the Check first`
	if err != nil || cmp.Diff([]string{want}, texts(errs)) != "" {
		t.Errorf("got %q, %v", texts(errs), err)
	}
	var none *check.Uses
	if errs, err := none.Validate(t.Context(), using(with("x")), "default", nil); len(errs) > 0 || err != nil {
		t.Errorf("no Uses find %v, %v", errs, err)
	}
}

// away has no Checks.
type away struct{ check.Definitions }

func (away) Check(context.Context, types.NamespacedName) (*shipper.Check, error) {
	return nil, errors.New("API server is away")
}

func TestACheckThatCannotBeReadIsNotMissing(t *testing.T) {
	if _, err := check.NewUses(away{}, "").Validate(t.Context(), using(with("x")), "shop", nil); err == nil {
		t.Error("it was judged")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := ask.Know(t, ask.Grant(), []client.Object{compared()}...)
	_, err := check.NewUses(w.State, "").Validate(ctx, using(with("errors")), "shop", nil)
	ask.CheckRefusal(t, err, response.Unavailable, "waited too long for other expressions to be compiled")
}

// A write with hundreds of long queries would take minutes to parse.
func TestAllQueriesOfAWriteAreBounded(t *testing.T) {
	long := query("old", "$(slack) + $(slack) + "+strings.Repeat("a_long_name + ", 250)+"a")
	w := ask.Know(t, ask.Grant(), compared(long))
	uses := check.NewUses(w.State, "")
	of := func(n int) []string {
		var all []shipper.StepCheck
		for i := range n {
			all = append(all, with("errors", "slack", fmt.Sprint(i)))
		}
		errs, err := uses.Validate(t.Context(), using(all...), "shop", nil)
		if err != nil {
			t.Fatal(err)
		}
		return texts(errs)
	}
	if got := of(30); len(got) > 0 {
		t.Errorf("30 of 3 KiB: %q", got)
	}
	got := of(60)
	const want = "the queries of all checks, with their arguments, are longer than 128 KiB together: use fewer or shorter ones"
	if len(got) != 1 || !strings.Contains(got[0], want) {
		t.Errorf("60 of 3 KiB: %.300q", got)
	}
}
