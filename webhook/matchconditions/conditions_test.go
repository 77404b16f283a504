// SPDX-License-Identifier: Apache-2.0

package matchconditions_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/matchconditions"
)

// named are conditions with these expressions.
func named(expressions ...string) []shipper.RolloutBlockMatchCondition {
	out := make([]shipper.RolloutBlockMatchCondition, len(expressions))
	for i, e := range expressions {
		out[i] = shipper.RolloutBlockMatchCondition{Name: fmt.Sprint("c", i), Expression: e}
	}
	return out
}

// as makes a request that of a member of groups.
func as(req *admission.Request, groups ...string) *admission.Request {
	req.UserInfo.Groups = groups
	req.UserInfo.Extra = map[string]authenticationv1.ExtraValue{"scopes": {"deploy"}}
	return req
}

// large is an Application whose values have a list of a thousand.
func large(app *shipper.Application) {
	list := make([]any, 1000)
	for i := range list {
		list[i] = "value"
	}
	app.Spec.Template.Values = &shipper.ChartValues{"list": list}
}

// costly takes a million comparisons of a large Application, and is false.
const costly = `object.spec.template.values.list.exists(x, object.spec.template.values.list.exists(y, x != y))`

func TestConditions(t *testing.T) {
	app := ask.Application()
	create, remove := ask.Create("dev", app), ask.Delete("dev", app)
	update := ask.Update("dev", ask.Application(ask.Version("0.0.2")), app)
	rel := ask.Release(app, nil)
	for sentence, tc := range map[string]struct {
		conditions []string
		req        *admission.Request
		want       bool
	}{
		"none match":                   {nil, create, true},
		"one that is true":             {[]string{"true"}, create, true},
		"one that is false":            {[]string{"false"}, create, false},
		"all but one are true":         {[]string{"true", "false"}, create, false},
		"the user by name":             {[]string{`request.userInfo.username == "dev"`}, create, true},
		"the user by another":          {[]string{`request.userInfo.username == "ann"`}, create, false},
		"the user by group":            {[]string{`"interns" in request.userInfo.groups`}, as(ask.Create("dev", app), "interns"), true},
		"the user by another group":    {[]string{`"sre" in request.userInfo.groups`}, as(ask.Create("dev", app), "interns"), false},
		"what else is said of a user":  {[]string{`"deploy" in request.userInfo.extra.scopes`}, as(ask.Create("dev", app)), true},
		"the operation":                {[]string{`request.operation == "DELETE"`}, remove, true},
		"the kind":                     {[]string{`object.kind == "Release"`}, ask.Create("dev", rel), true},
		"the namespace":                {[]string{`request.namespace == "default" && request.name.startsWith("super")`}, create, true},
		"a dry run":                    {[]string{`!request.dryRun`}, create, true},
		"the object":                   {[]string{`object.spec.template.chart.name == "nginx"`}, create, true},
		"the object before":            {[]string{`oldObject.spec.template.chart.version == "0.0.1"`}, update, true},
		"what changes":                 {[]string{`object.spec.template.chart != oldObject.spec.template.chart`}, update, true},
		"what does not change":         {[]string{`object.spec.template.values != oldObject.spec.template.values`}, update, false},
		"there is none before":         {[]string{`oldObject == null`}, create, true},
		"there is none after":          {[]string{`object == null`}, remove, true},
		"values of any form":           {[]string{`object.spec.template.values.replicaCount > 2`}, create, true},
		"what may be absent":           {[]string{`object.metadata.?labels[?"tier"].orValue("") == "critical"`}, create, false},
		"one that fails counts":        {[]string{`object.metadata.labels.tier == "critical"`}, create, true},
		"one that fails on no object":  {[]string{`object.spec.template.chart.name == "redis"`}, remove, true},
		"one that fails, and is false": {[]string{`object.metadata.labels.tier == "critical"`, "false"}, create, false},
		"one that was never compiled":  {[]string{"object.metadata."}, create, true},
		"one that costs too much":      {[]string{costly}, ask.Create("dev", ask.Application(large)), true},
		"the same of a small object": {[]string{costly}, ask.Create("dev", ask.Application(func(a *shipper.Application) {
			a.Spec.Template.Values = &shipper.ChartValues{"list": []any{"a", "a"}}
		})), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			req := *tc.req
			yes := false
			req.Kind.Kind, req.DryRun = "Application", &yes
			match := matchconditions.New().Match(t.Context(), &req)
			for range 2 { // the second time as well
				if got := match(named(tc.conditions...)); got != tc.want {
					t.Errorf("it matches: %v, want %v", got, tc.want)
				}
			}
		})
	}
}

// A request cannot be held up by how many blocks ask something costly of it.
func TestConditionsShareOneBudget(t *testing.T) {
	match := matchconditions.New().Match(t.Context(), ask.Create("dev", ask.Application(large)))
	const dear = `object.spec.template.values.list.all(x, x == "other" || object.spec.template.values.list[0] == x && x.contains("value"))`
	began := time.Now()
	for range 2000 {
		if !match(named(dear)) {
			t.Fatal("what could not be asked any more does not match")
		}
	}
	if !match(named("false")) {
		t.Error("there is still something left")
	}
	t.Logf("2000 blocks took %s", time.Since(began).Round(time.Millisecond))
}

func TestConditionsOfWhatIsNoObject(t *testing.T) {
	c := matchconditions.New()
	for _, raw := range []string{"7", `{"spec"`, `[]`} {
		req := ask.Update("dev", ask.Application(), ask.Application())
		req.OldObject.Raw = []byte(raw)
		match := c.Match(t.Context(), req)
		for range 2 { // the second time as well
			if !match(named("false")) {
				t.Errorf("%s could be asked", raw)
			}
		}
		req.Object.Raw, req.OldObject.Raw = []byte(raw), nil
		if !c.Match(t.Context(), req)(named("false")) {
			t.Errorf("%s could be asked", raw)
		}
	}
}

func TestConditionsAreValidated(t *testing.T) {
	at := field.NewPath("spec", "matchConditions")
	for sentence, tc := range map[string]struct {
		conditions []string
		want       []string
	}{
		"what the API server understands": {[]string{
			`request.userInfo.groups.exists(g, g == "interns")`, `object.spec.template.chart.name in ["nginx"]`,
			`isSemver(object.spec.template.chart.version)`,
		}, nil},
		"one that does not end": {[]string{"true", "object."}, []string{
			`spec.matchConditions[1].expression: Invalid value: "object.": compilation failed: ERROR: <input>:1:8: ` +
				`Syntax error: no viable alternative at input '.' | object. | .......^`,
		}},
		"two that are no questions": {[]string{`"yes"`, "1"}, []string{
			`spec.matchConditions[0].expression: Invalid value: "\"yes\"": must evaluate to bool but got string`,
			`spec.matchConditions[1].expression: Invalid value: "1": must evaluate to bool but got int`,
		}},
		"rights, which are not asked": {[]string{`authorizer.group("").resource("pods").check("get").allowed()`}, []string{
			`spec.matchConditions[0].expression: Invalid value: "authorizer.group(\"\").resource(\"pods\").check(\"get\").allowed()": ` +
				`compilation failed: ERROR: <input>:1:1: undeclared reference to 'authorizer' (in container '') ` +
				`| authorizer.group("").resource("pods").check("get").allowed() | ^`,
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got []string
			for _, err := range matchconditions.New().Validate(at, named(tc.conditions...)) {
				got = append(got, strings.Join(strings.Fields(err.Error()), " "))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestConditionsAreAskedAtTheSameTime(t *testing.T) {
	c := matchconditions.New()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 50 {
				match := c.Match(t.Context(), ask.Create("dev", ask.Application()))
				if got := match(named(fmt.Sprintf("%d < 25", n))); got != (n < 25) {
					t.Errorf("%d: %d < 25 is %v", i, n, got)
				}
			}
		})
	}
	all.Wait()
}

func BenchmarkAsk(b *testing.B) {
	c := matchconditions.New()
	var blocks [][]shipper.RolloutBlockMatchCondition
	for i := range 1000 {
		blocks = append(blocks, named(fmt.Sprintf(`request.userInfo.username == "user-%d"`, i)))
	}
	ask := func() {
		match := c.Match(b.Context(), ask.Create("dev", ask.Application()))
		for _, conditions := range blocks {
			if match(conditions) {
				b.Fatal("it matches")
			}
		}
	}
	ask()
	b.ReportAllocs()
	for b.Loop() {
		ask()
	}
}
