// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	namevalidation "k8s.io/apimachinery/pkg/util/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	checkrules "shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward/expression"
	"shipper.dev/shipper/outward/promql"
)

// validate validates a Check as the API server does, by the schema of its kind.
func validate(t *testing.T, check *shipper.Check) {
	t.Helper()
	validateBySchema(t, "checks", check)
}

// validateBySchema validates an object of a kind, which is named as in URLs.
func validateBySchema(t *testing.T, resource string, o client.Object) {
	t.Helper()
	raw, err := os.ReadFile("../../../manifests/crd/shipper.booking.com_" + resource + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var versioned apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(raw, &versioned); err != nil {
		t.Fatal(err)
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		versioned.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		t.Fatal(err)
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	delete(object["metadata"].(map[string]any), "creationTimestamp")
	errs := validation.ValidateCustomResource(nil, object, validator)
	more, _ := schemacel.NewValidator(structural, true, celconfig.PerCallLimit).Validate(
		t.Context(), nil, structural, object, nil, celconfig.RuntimeCELCostBudget)
	twice := listtype.ValidateListSetsAndMaps(nil, structural, object)
	for _, err := range slices.Concat(errs, more, twice) {
		t.Errorf("%s %s: %v", resource, o.GetName(), err)
	}
}

// checksOfTests are all Checks that the files in testdata become.
func checksOfTests(t *testing.T) map[types.NamespacedName]*shipper.Check {
	t.Helper()
	out := map[types.NamespacedName]*shipper.Check{}
	for _, name := range inputs {
		_, converted := converting(t, name)
		for _, one := range converted.checks {
			if one.check != nil {
				out[types.NamespacedName{Namespace: one.check.Namespace, Name: one.check.Name}] = one.check
			}
		}
	}
	return out
}

// valuesOf are values of all arguments that a Check has.
func valuesOf(check *shipper.Check) map[string]string {
	out := map[string]string{}
	for _, name := range checkrules.Predefined() {
		out[name] = "x"
	}
	for _, arg := range check.Spec.Args {
		out[arg.Name] = "1"
		if arg.Default != nil {
			out[arg.Name] = *arg.Default
		}
	}
	return out
}

func TestConvertedChecksAreValid(t *testing.T) {
	for key, check := range checksOfTests(t) {
		validate(t, check)
		if wrong := namevalidation.IsDNS1123Subdomain(check.Name); len(wrong) > 0 {
			t.Errorf("%s: %v", key, wrong)
		}
		for _, arg := range check.Spec.Args {
			if arg.Default != nil {
				if err := checkrules.Matches(arg, *arg.Default); err != nil {
					t.Errorf("%s: argument %s: %q %v", key, arg.Name, *arg.Default, err)
				}
			}
		}
		if p := check.Spec.Prometheus; p != nil && check.Spec.Pass+check.Spec.Fail == "" {
			t.Errorf("%s: prometheus needs pass or fail", key)
		}
		for name, text := range textsOf(check) {
			if _, err := checkrules.Substitute(text, valuesOf(check)); err != nil {
				t.Errorf("%s: %s: %v", key, name, err)
			}
		}
		if h := check.Spec.HTTP; h != nil {
			if _, err := checkrules.SubstituteURL(h.URL, valuesOf(check)); err != nil {
				t.Errorf("%s: url: %v", key, err)
			}
		}
	}
}

func TestExpressionsAndQueriesOfConvertedChecksCompile(t *testing.T) {
	for key, check := range checksOfTests(t) {
		in := expression.Inputs{HTTP: check.Spec.HTTP != nil}
		for name := range valuesOf(check) {
			in.Args = append(in.Args, name)
		}
		if p := check.Spec.Prometheus; p != nil {
			in.Queries = []string{resultName}
			query, err := checkrules.Substitute(string(p.Queries[resultName]), valuesOf(check))
			if err != nil {
				t.Fatal(err)
			}
			if err := promql.Parse(query); err != nil && !strings.Contains(query, `a"b`) { // the review of this value says so
				t.Errorf("%s: %s: %v", key, query, err)
			}
		}
		for _, text := range []string{check.Spec.Pass, check.Spec.Fail} {
			if text == "" {
				continue
			}
			if err := expression.Check(t.Context(), text, in, environment.NewExpressions); err != nil {
				t.Errorf("%s: %s: %v", key, text, err)
			}
		}
	}
}

// textsOf are the texts of a Check that may have arguments.
func textsOf(check *shipper.Check) map[string]string {
	out := map[string]string{}
	if p := check.Spec.Prometheus; p != nil {
		out["query"] = string(p.Queries[resultName])
	}
	if h := check.Spec.HTTP; h != nil {
		out["body"] = h.Body
		for name, value := range h.Headers {
			out[name] = value
		}
	}
	if j := check.Spec.Job; j != nil {
		out["job"] = string(j.Raw)
	}
	return out
}

func TestStepsGiveChecksTheArgumentsThatTheyNeed(t *testing.T) {
	checks := checksOfTests(t)
	for _, name := range inputs {
		_, out := converting(t, name)
		for _, one := range out.all {
			s := one.app.Spec.Template.Strategy
			for i := range s.Steps {
				names := map[string]bool{}
				for _, use := range s.ChecksAt(int32(i)) {
					if names[use.NameInStep()] {
						t.Errorf("%s: step %d has two checks %s", name, i, use.NameInStep())
					}
					names[use.NameInStep()] = true
					key, err := checkrules.KeyOf(use.Check, one.app.Namespace, checkrules.SharedNamespace)
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					if checks[key] == nil {
						continue // it is listed as missing
					}
					if _, wrong := checkrules.Resolve(checks[key].Spec.Args, use.Args); len(wrong) > 0 {
						t.Errorf("%s: step %d, %s: %v", name, i, use.Check, wrong)
					}
				}
			}
		}
	}
}

// oneMetric converts a template with one metric, and arguments.
func oneMetric(t *testing.T, args, metric string) (*shipper.Check, []string) {
	t.Helper()
	out, err := convert(t.Context(), fmt.Appendf(nil, "{apiVersion: argoproj.io/v1alpha1, kind: AnalysisTemplate, metadata: {name: a}, "+
		"spec: {args: [%s], metrics: [{name: m, %s}]}}", args, metric), settings{})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.checks) != 2 || out.checks[1].check == nil {
		t.Fatalf("got %d checks: %v", len(out.checks), out.reviews())
	}
	validate(t, out.checks[1].check)
	return out.checks[1].check, out.reviews()
}

func TestNothingIsLostOfAUsualTemplate(t *testing.T) {
	const template = `{apiVersion: argoproj.io/v1alpha1, kind: AnalysisTemplate, metadata: {name: errors}, spec: {args: [{name: service}], ` +
		`metrics: [` +
		`{name: errors, interval: 1m, count: 5, failureLimit: 1, successCondition: "result[0] <= 0.01", provider: {prometheus: {query: ` +
		`'sum(rate(errors{service="{{args.service}}"}[5m]))'}}}]}}`
	stdout, stderr, err := run(t, []byte(template), "-f", "-")
	if err != nil || stderr != "" || !strings.Contains(stdout, "kind: Check\n") {
		t.Errorf("%v\n%s\n%s", err, stderr, stdout)
	}
}

func TestLimitsOfMetrics(t *testing.T) {
	const up = `provider: {prometheus: {query: up}}, successCondition: "result[0] == 1"`
	for sentence, c := range map[string]struct {
		args, metric string
		want         shipper.CheckSpec
	}{
		"a metric without interval is measured once": {metric: up, want: shipper.CheckSpec{Count: 1, InconclusiveLimit: 4}},
		"a metric without count is measured while the step takes": {metric: "interval: 90s, " + up,
			want: shipper.CheckSpec{Interval: "1m30s", InconclusiveLimit: 4}},
		"numbers are texts, too": {metric: `interval: 1h, count: "3", failureLimit: "2", inconclusiveLimit: "1", consecutiveErrorLimit: "0", ` +
			up,
			want: shipper.CheckSpec{Interval: "1h", Count: 3, FailureLimit: 2, InconclusiveLimit: 1, ConsecutiveErrorLimit: new(int32(0))}},
		"empty answers, which are errors in Argo, have the limit of errors": {metric: "interval: 1m, consecutiveErrorLimit: 7, " + up,
			want: shipper.CheckSpec{Interval: "1m", InconclusiveLimit: 7, ConsecutiveErrorLimit: new(int32(7))}},
		"an argument without value leaves its field out": {args: "{name: most}", metric: `interval: 1m, count: "{{args.most}}", ` + up,
			want: shipper.CheckSpec{Interval: "1m", InconclusiveLimit: 4}},
	} {
		t.Run(sentence, func(t *testing.T) {
			check, _ := oneMetric(t, c.args, c.metric)
			got := check.Spec
			got.Prometheus, got.Pass = nil, ""
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatConditionsSayOfNoData(t *testing.T) {
	for _, c := range []struct {
		success, failure string
		want             shipper.CheckNoData
		reviewed         bool
	}{
		{success: "result[0] > 1"},
		{success: "len(result) > 0 && result[0] > 1", want: shipper.NoDataFail},
		{failure: "len(result) > 0 && result[0] > 1", want: shipper.NoDataPass},
		{failure: "len(result) == 0 || !(result[0] < 1)", want: shipper.NoDataFail},
		{success: "isNaN(result) || result > 1", want: shipper.NoDataPass},
		{success: "len(result) == 0 || result[0] > 1", want: shipper.NoDataPass, reviewed: true},
		{success: "isNaN(result[0]) || result[0] > 1", want: shipper.NoDataPass, reviewed: true},
		{success: "len(result) > 0 && result[0] > 9", failure: "len(result) > 0 && result[0] < 5", want: shipper.NoDataInconclusive},
		{want: shipper.NoDataPass},
	} {
		check, reviews := oneMetric(t, "", fmt.Sprintf("successCondition: %q, failureCondition: %q, provider: {prometheus: {query: up}}",
			c.success, c.failure))
		if check.Spec.NoData != c.want || (len(reviews) > 0) != c.reviewed {
			t.Errorf("%s, %s: noData %q, reviews %v", c.success, c.failure, check.Spec.NoData, reviews)
		}
	}
}

func TestArgumentsOfTexts(t *testing.T) {
	for text, want := range map[string]string{
		"a{{args.x-y}}b{{ args.x-y }}":  "a$(x_y)b$(x_y)",
		"$(date) $$(HOME) {{args.x-y}}": "$$(date) $$$(HOME) $(x_y)",
	} {
		got, err := replaced(text, argumentName)
		if err != nil || got != want {
			t.Errorf("%s: got %s, %v\nwant %s", text, got, err, want)
		}
		back, err := checkrules.Substitute(got, map[string]string{"x_y": "{{args.x-y}}"})
		if err != nil || back != strings.ReplaceAll(text, "{{ args.x-y }}", "{{args.x-y}}") {
			t.Errorf("%s becomes %s: %v", text, back, err)
		}
	}
	for _, text := range []string{"${{args.x}}", "{{workflow.x}}"} {
		if got, err := replaced(text, argumentName); err == nil {
			t.Errorf("%s: got %s, want an error", text, got)
		}
	}
}

func TestPatternsMatchTheValuesThatMadeThem(t *testing.T) {
	if got := patternFor([]string{"http://prom:9090", "web-canary", ""}); got != "" {
		t.Errorf("values that the default matches have the pattern %s", got)
	}
	for _, value := range []string{`a b`, `5xx|4xx`, `^a[b-c]\d$`, "é\n", strings.Repeat("x", 256), "日本語" +
		"абвгдежзийклмнопрстуфхцчшщъыьэюяАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ"} {
		arg := shipper.CheckArgument{Pattern: patternFor([]string{"plain", value})}
		if err := checkrules.Matches(arg, value); err != nil || len(arg.Pattern) > 256 {
			t.Errorf("%q %v", value, err)
		}
	}
}

func TestNamesOfArguments(t *testing.T) {
	args := &arguments{}
	for _, c := range []struct{ name, want string }{
		{"service-name", "service_name"}, {"service_name", "service_name_2"}, {"namespace", "arg_namespace"}, {"in", "arg_in"},
		{"2xx", "arg_2xx"}, {"restarts.max", "restarts_max"},
	} {
		if got := args.add(argument{name: c.name}).as; got != c.want {
			t.Errorf("%s becomes %s, want %s", c.name, got, c.want)
		}
	}
}

// rateTemplate is a template with an argument and one metric.
const rateTemplate = `
---
{apiVersion: argoproj.io/v1alpha1, kind: AnalysisTemplate, metadata: {name: rate}, spec: {args: [{name: hash}, {name: most, value: "5"}],
metrics: [{name: rate, interval: 1m, successCondition: "result[0] < {{args.most}}",
provider: {prometheus: {query: 'rate{hash="{{args.hash}}"}'}}}]}}
`

func TestAnalysesOfACanary(t *testing.T) {
	const named = `templates: [{templateName: rate}], args: [{name: hash, value: abc}]`
	rate := shipper.StepCheck{Check: "rate", Args: map[string]string{"hash": "abc"}}
	with := func(step shipper.RolloutStrategyStep, checks ...shipper.StepCheck) shipper.RolloutStrategyStep {
		step.Checks = checks
		return step
	}
	twenty, forty := at("weight 20", pair(20, 80), pair(20, 80), "1m"), at("weight 40", pair(40, 60), pair(40, 60), "1m")
	steps := `steps: [{setWeight: 20}, {pause: {duration: 1m}}, {setWeight: 40}, {pause: {duration: 1m}}]`
	for sentence, c := range map[string]struct {
		canary string
		want   shipper.RolloutStrategy
	}{
		"a background analysis is made where the contender has traffic": {
			canary: `analysis: {` + named + `}, ` + steps,
			want:   shipper.RolloutStrategy{Checks: []shipper.StepCheck{rate}, Steps: []shipper.RolloutStrategyStep{twenty, forty, fullOn()}},
		},
		"a startingStep in the first step of the contender is all steps": {
			canary: `analysis: {startingStep: 1, ` + named + `}, ` + steps,
			want:   shipper.RolloutStrategy{Checks: []shipper.StepCheck{rate}, Steps: []shipper.RolloutStrategyStep{twenty, forty, fullOn()}},
		},
		"a later startingStep is the steps from there": {
			canary: `analysis: {startingStep: 2, ` + named + `}, ` + steps,
			want:   strategy(twenty, with(forty, rate), fullOn()),
		},
		"an analysis step is judged before the step that follows": {
			canary: `steps: [{setWeight: 20}, {analysis: {` + named + `}}, {pause: {duration: 1m}}]`,
			want: strategy(with(at("weight 20", pair(20, 80), pair(20, 80), "0s"), rate), at("pause", pair(20, 80), pair(20, 80), "1m"),
				fullOn()),
		},
		"an analysis step after a pause begins after it": {
			canary: `steps: [{setWeight: 20}, {pause: {duration: 1m}}, {analysis: {` + named + `}}]`,
			want:   strategy(twenty, with(at("analysis", pair(20, 80), pair(20, 80), "0s"), rate), fullOn()),
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			in := append(withStrategy("{canary: {"+c.canary+"}}", "progressDeadlineAbort: true"), rateTemplate...)
			out, err := convert(t.Context(), in, settings{regions: []string{"eu"}})
			if err != nil {
				t.Fatal(err)
			}
			c.want.FirstRelease, c.want.ProgressDeadline, c.want.OnFailure = shipper.FirstReleaseImmediate, "10m", shipper.OnFailureAbort
			if diff := cmp.Diff(&c.want, out.all[0].app.Spec.Template.Strategy); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if reviews := out.reviews(); len(reviews) > 0 {
				t.Errorf("reviews: %v", reviews)
			}
		})
	}
}

func TestHashesOfAllUsesBecomeNamesOfReleases(t *testing.T) {
	use := func(from string) string {
		return `{canary: {steps: [{setWeight: 20}, {analysis: {templates: [{templateName: rate}], args: [{name: hash, ` + from + `}]}}]}}`
	}
	latest := `valueFrom: {podTemplateHashValue: Latest}`
	for sentence, c := range map[string]struct {
		uses      []string
		wantQuery string
		wantArgs  []string
	}{
		"Latest is the contender":         {[]string{latest, latest}, `rate{hash="$(release)"}`, []string{"most"}},
		"Stable is the incumbent":         {[]string{`valueFrom: {podTemplateHashValue: Stable}`}, `rate{hash="$(incumbent)"}`, []string{"most"}},
		"two kinds of values are no hash": {[]string{latest, "value: abc"}, `rate{hash="$(hash)"}`, []string{"hash", "most"}},
		"the name is that of the Application": {[]string{`valueFrom: {fieldRef: {fieldPath: metadata.name}}`}, `rate{hash="$(app)"}`,
			[]string{"most"}},
		"a label is a value": {[]string{`valueFrom: {fieldRef: {fieldPath: "metadata.labels['a']"}}`}, `rate{hash="$(hash)"}`,
			[]string{"hash", "most"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			in := rateTemplate
			for i, from := range c.uses {
				in += "---" + strings.ReplaceAll(string(withStrategy(use(from), "")), "name: web}", fmt.Sprintf("name: web%d}", i))
			}
			out, err := convert(t.Context(), []byte(in), settings{})
			if err != nil {
				t.Fatal(err)
			}
			check := out.checks[1].check
			var args []string
			for _, arg := range check.Spec.Args {
				args = append(args, arg.Name)
			}
			if got := string(check.Spec.Prometheus.Queries[resultName]); got != c.wantQuery || !slices.Equal(args, c.wantArgs) {
				t.Errorf("got %s with %v, want %s with %v", got, args, c.wantQuery, c.wantArgs)
			}
		})
	}
}

func TestRefusalsOfTemplates(t *testing.T) {
	template := func(name, spec string) string {
		return "{apiVersion: argoproj.io/v1alpha1, kind: AnalysisTemplate, metadata: {name: " + name + "}, spec: {" + spec + "}}\n---\n"
	}
	const job = `provider: {job: {spec: {a: b}}}`
	for sentence, c := range map[string]struct{ in, want string }{
		"no metrics":                {template("a", ""), "document 1: spec.metrics is missing"},
		"a metric that is nameless": {template("a", "metrics: [{"+job+"}]"), "document 1: spec.metrics[0].name is missing"},
		"an argument twice": {template("a", "args: [{name: b}, {name: b}], metrics: [{name: a, "+job+"}]"),
			"document 1: spec.args[1].name must be there, and only once"},
		"a name of no Check": {template("a", "metrics: [{name: é, "+job+"}, {name: b, "+job+"}]"), "document 1: spec.metrics cannot make the " +
			"name of a Check of é: " + strings.Join(namevalidation.IsDNS1123Subdomain("a-"), "; ")},
		"two with one name": {template("a", "metrics: [{name: b-c, "+job+"}, {name: b_c, "+job+"}]"),
			"two metrics make the Check a-b-c: rename a template or a metric"},
		"more checks than a step has": {
			template("a", "metrics: ["+strings.Repeat("{name: NAME, "+job+"}, ", 11)+"]") +
				string(withStrategy("{canary: {steps: [{analysis: {templates: [{templateName: a}]}}]}}", "")),
			"document 2: spec.strategy.canary.steps[0].analysis makes 11 checks, and a step has 10 at most",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			for i := range strings.Count(c.in, "NAME") {
				c.in = strings.Replace(c.in, "NAME", fmt.Sprintf("m%d", i), 1)
			}
			_, err := convert(t.Context(), []byte(c.in), settings{})
			if err == nil || err.Error() != c.want {
				t.Errorf("got\n%v\nwant\n%s", err, c.want)
			}
		})
	}
}

// TestAnInputIsNeverTheCauseOfAPanic reads every manifest of testdata with each line left out.
func TestAnInputIsNeverTheCauseOfAPanic(t *testing.T) {
	for _, name := range []string{"analysis", "flagger", "lossy"} {
		raw, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(raw), "\n")
		for i := range lines {
			out, err := convert(t.Context(), []byte(strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "")), settings{})
			if err == nil {
				_, err = out.print()
			}
			if err != nil && strings.Contains(err.Error(), "%!") {
				t.Errorf("%s without line %d: %v", name, i+1, err)
			}
		}
	}
}
