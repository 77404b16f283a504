// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestArgumentsAreThoseOfTheRunAndThePredefinedOnes(t *testing.T) {
	start := time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)
	target := &shipper.CheckTarget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{shipper.AppLabel: "web"}},
		Spec:       shipper.CheckTargetSpec{Step: 2, Incumbent: "web-0", StartTime: metav1.NewTime(start)},
	}
	cluster := &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}, Spec: shipper.ClusterSpec{Region: "eu"}}
	run := &shipper.CheckRun{Args: map[string]string{"slack": "0.1"}}
	for sentence, tc := range map[string]struct {
		after time.Duration
		want  string
	}{"a run that begins": {0, "1s"}, "a run of a minute": {time.Minute, "60s"}} {
		want := map[string]string{
			"app": "web", "namespace": "shop", "release": "web-1", "incumbent": "web-0", "cluster": "eu-1", "region": "eu", "step": "2",
			"elapsed": tc.want, "slack": "0.1",
		}
		if diff := cmp.Diff(want, check.Arguments(target, run, cluster, start.Add(tc.after))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}

func TestArgumentsAreGivenOrHaveDefaults(t *testing.T) {
	declared := []shipper.CheckArgument{
		{Name: "slack", Default: new("0")}, {Name: "code"}, {Name: "text", Pattern: "a+|b", Default: new("b")},
	}
	for sentence, tc := range map[string]struct {
		given  map[string]string
		values map[string]string
		errs   []string
	}{
		"a value that is given wins": {
			map[string]string{"slack": "0.001", "code": "500"}, map[string]string{"slack": "0.001", "code": "500", "text": "b"}, nil,
		},
		"an argument without a default is needed": {
			nil, map[string]string{"slack": "0", "text": "b"}, []string{"code: the Check needs a value for this argument"},
		},
		"a value cannot leave its place in a query": {
			map[string]string{"code": "1", "slack": "0) or vector(1"}, map[string]string{"code": "1", "text": "b"},
			[]string{"slack: does not match the argument's pattern ^[A-Za-z0-9._:/-]{0,253}$"},
		},
		"a line break does not end a value": {
			map[string]string{"code": "1\n", "text": "b\nx"}, map[string]string{"slack": "0"},
			[]string{"code: does not match the argument's pattern ^[A-Za-z0-9._:/-]{0,253}$", "text: does not match the argument's pattern a+|b"},
		},
		"a pattern is about the whole value": {
			map[string]string{"code": "1", "text": "ba"}, map[string]string{"slack": "0", "code": "1"},
			[]string{"text: does not match the argument's pattern a+|b"},
		},
		"an argument that is not declared is refused": {
			map[string]string{"code": "1", "cluster": "x"}, map[string]string{"slack": "0", "code": "1", "text": "b"},
			[]string{"cluster: no argument cluster is declared; there are: code, slack, text, " +
				"app, namespace, release, incumbent, cluster, region, step, elapsed"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			values, wrong := check.Resolve(declared, tc.given)
			var errs []string
			for _, e := range wrong {
				errs = append(errs, e.Error())
			}
			if diff := cmp.Diff(tc.values, values); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.errs, errs); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSubstitute(t *testing.T) {
	const hosted = "error: has an argument in its host: only its path and its query may have arguments"
	const left = "error: has . or .. between slashes with its arguments: the server would read another path"
	values := map[string]string{
		"release": "web-1", "slack": "0", "path": "a b&c/d", "quote": `"}, {"x": "`, "up": "..", "out": "x/../../admin", "dot": ".",
	}
	said := func(text string, err error) string {
		if err != nil {
			return "error: " + err.Error()
		}
		return text
	}
	inJSON := func(text string) string {
		out, err := check.SubstituteJSON([]byte(text), values)
		return said(string(out), err)
	}
	for is, expected := range map[string]string{
		said(check.Substitute(`x{r="$(release)"} > $(slack)`, values)): `x{r="web-1"} > 0`,
		said(check.Substitute("$$(release) $(release)", values)):       "$(release) web-1",
		said(check.Substitute("no arguments ($) here", values)):        "no arguments ($) here",
		said(check.Substitute("$(incumbant)", values)): "error: no argument incumbant is declared; there are: dot, out, path, quote, slack, " +
			"up, app, namespace, release, incumbent, cluster, region, step, elapsed",
		said(check.Substitute("$(release", values)):                                   "error: $(release is not closed by )",
		said(check.SubstituteURL("https://x/$(path)?q=$(path)&r=$(release)", values)): "https://x/a%20b&c%2Fd?q=a+b%26c%2Fd&r=web-1",
		said(check.SubstituteURL("https://x/api/$(up)/state", values)):                left,
		said(check.SubstituteURL("https://x/api/$(out)", values)):                     left,
		said(check.SubstituteURL("https://x/api/$(dot)$(dot)/", values)):              left,
		said(check.SubstituteURL("https://x/a/../v$(up)?q=$(dot)", values)):           left,
		said(check.SubstituteURL("https://x/v1$(up)?q=$(up)", values)):                "https://x/v1..?q=..",
		said(check.SubstituteURL("https://$(release).evil.com/", values)):             hosted,
		said(check.SubstituteURL("$(release)://x/", values)):                          hosted,
		said(check.SubstituteURL("https://x", values)):                                "https://x",
		inJSON(`{"a": ["$(quote)"], "$(release)": 1}`):                                `{"$(release)":1,"a":["\"}, {\"x\": \""]}`,
		inJSON(`{`): "error: is no JSON: unexpected end of JSON input",
	} {
		if is != expected {
			t.Errorf("%s, not %s", is, expected)
		}
	}
}

// TestArgumentsTakeBoundedTimeAndMemory has patterns and texts that grow.
func TestArgumentsTakeBoundedTimeAndMemory(t *testing.T) {
	for _, pattern := range []string{`(a?){999}`, `((a?){30}){30}`, `(a{10}){100}`, strings.Repeat("(a?){99}", 9)} {
		if _, err := check.Pattern(pattern); err == nil || !strings.Contains(err.Error(), "more than 600 characters with its repetitions") {
			t.Errorf("%s: %v", pattern, err)
		}
	}
	for _, pattern := range []string{check.DefaultPattern, `[0-9]+(ms|s|m)`, `(?s).*`, `[a-z]{1,63}`} {
		if _, err := check.Pattern(pattern); err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
	}
	long := map[string]string{"x": strings.Repeat("a", 257)}
	if _, wrong := check.Resolve([]shipper.CheckArgument{{Name: "x", Pattern: ".*"}}, long); len(wrong) != 1 {
		t.Errorf("%v", wrong)
	}
	many, values := strings.Repeat("$(x)", 8000), map[string]string{"x": strings.Repeat("\x01", 250)}
	if _, err := check.Substitute(many, values); err == nil {
		t.Error("a text of 2 MB is made")
	}
	text := `["` + strings.Repeat(`$(x)","`, 8000) + `"]`
	if _, err := check.SubstituteJSON([]byte(text), values); err == nil {
		t.Error("a JSON text of 12 MB is made")
	}
}

func FuzzArgumentsStayInTheirPlace(f *testing.F) {
	f.Add("0.001")
	f.Add(`"} or up{x="`)
	f.Fuzz(func(t *testing.T, value string) {
		values, wrong := check.Resolve([]shipper.CheckArgument{{Name: "x"}}, map[string]string{"x": value})
		if len(wrong) > 0 {
			return
		}
		for _, r := range values["x"] {
			switch {
			case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '.', r == '_', r == ':', r == '/', r == '-':
			default:
				t.Fatalf("%q passes", value)
			}
		}
	})
}

func TestChecksAreNamedInTheirNamespaceOrTheSharedOne(t *testing.T) {
	for name, expected := range map[string]string{
		"errors": "shop/errors", "shipper-checks/errors": "shipper-checks/errors", "other/errors": "", "shipper-checks/": "",
		"shipper-checks/a/b": "",
	} {
		key, err := check.KeyOf(name, "shop", "shipper-checks")
		if is := key.String(); (err == nil) != (expected != "") || err == nil && is != expected {
			t.Errorf("%s: %s, %v", name, is, err)
		}
	}
	if _, err := check.KeyOf("/errors", "shop", ""); err == nil {
		t.Error("without a shared namespace, an empty one is")
	}
}
