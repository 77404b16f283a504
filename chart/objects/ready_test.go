// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/environment"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward/boundedcel"
)

func TestReadyJudgesObjects(t *testing.T) {
	const isReady = `object.status.conditions.exists(c, c.type == "Ready" && c.status == "True")`
	for _, c := range []struct {
		expression, object string
		want               bool
		err                string
	}{
		{isReady, `{status: {conditions: [{type: Synced, status: "False"}, {type: Ready, status: "True"}]}}`, true, ""},
		{isReady, `{status: {conditions: [{type: Ready, status: "False"}]}}`, false, ""},
		{isReady, `{status: {conditions: []}}`, false, ""},
		{isReady, `{}`, false, "the expression for ready cannot be evaluated: no such key: status"},
		{`has(object.status) && object.status.phase == "Running"`, `{}`, false, ""},
		{`has(object.status) && object.status.phase == "Running"`, `{status: {phase: Running}}`, true, ""},
		{`object.status.readyReplicas == int(object.spec.replicas)`, `{spec: {replicas: 2}, status: {readyReplicas: 2}}`, true, ""},
		{`object.status.readyReplicas >= object.spec.replicas`, `{spec: {replicas: 2}, status: {readyReplicas: 1}}`, false, ""},
		{`object.status.share > 0.5`, `{status: {share: 0.75}}`, true, ""},
		{`object.status.ready == true`, `{status: {ready: "yes"}}`, false, ""},
		{`object.metadata.namespace == "work"`, `{metadata: {namespace: work}}`, true, ""},
	} {
		ready, err := CompileReady(t.Context(), []shipper.ReadyRule{{Group: "example.com", Kind: "Widget", Expression: c.expression}})
		if err != nil {
			t.Errorf("%s: %v", c.expression, err)
			continue
		}
		o := object(t, c.object)
		o.SetAPIVersion("example.com/v1")
		o.SetKind("Widget")
		got, _, err := ready.Evaluate(t.Context(), &o)
		if got != c.want || fmt.Sprint(err) != fmt.Sprint(errorOf(c.err)) {
			t.Errorf("%s of %s is %v, %v; want %v, %s", c.expression, c.object, got, err, c.want, c.err)
		}
	}
}

func errorOf(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

func TestCheckReadyRefusesExpressions(t *testing.T) {
	for expression, want := range map[string]string{
		`object.status.ready`: "must be bool, is dyn: compare it, as in object.status.ready == true",
		`1`:                   "must be bool, is int",
		`object.`:             "does not compile: ",
		`other.ready == true`: "does not compile: 1:1: undeclared reference to 'other'",
		`object.status.a == object.status.b`: "compares lists, maps or dyn(…): compare texts, numbers, booleans or times; " +
			"of two fields, convert one, as in object.status.replicas == int(object.spec.replicas)",
		`object.metadata.name.matches("a(b)")`: "calls matches: ",
		`lists.range(999999999).size() > 0`:    "calls ",
	} {
		err := CheckReady(t.Context(), shipper.ReadyRule{Kind: "ConfigMap", Expression: expression}, environment.NewExpressions)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s gives %v, want %s", expression, err, want)
		}
		_, err = CompileReady(t.Context(), []shipper.ReadyRule{{Kind: "Secret", Expression: "true"}, {Kind: "ConfigMap", Expression: expression}})
		if err == nil || !strings.HasPrefix(err.Error(), "ready[1].expression: "+want) {
			t.Errorf("%s gives %v, want ready[1].expression: %s", expression, err, want)
		}
	}
}

func TestAllRulesForAKindMustBeTrue(t *testing.T) {
	ready, err := CompileReady(t.Context(), []shipper.ReadyRule{
		{Group: "example.com", Kind: "Widget", Expression: `object.a == 1`}, {Group: "example.com", Kind: "Widget", Expression: `object.b == 1`},
		{Kind: "Widget", Expression: "false"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, text := range []string{"{a: 1, b: 1}", "{a: 1, b: 2}", "{a: 2, b: 1}"} {
		o := object(t, text)
		o.SetAPIVersion("example.com/v1")
		o.SetKind("Widget")
		if got[text], _, err = ready.Evaluate(t.Context(), &o); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(map[string]bool{"{a: 1, b: 1}": true, "{a: 1, b: 2}": false, "{a: 2, b: 1}": false}, got); diff != "" {
		t.Error(diff)
	}
}

func TestObjectsWithoutARuleAreReady(t *testing.T) {
	var none *Ready
	some, err := CompileReady(t.Context(), []shipper.ReadyRule{{Kind: "Secret", Expression: "false"}})
	if err != nil {
		t.Fatal(err)
	}
	o := named("v1", "ConfigMap", "work", "a")
	for _, r := range []*Ready{none, {}, some} {
		if ready, _, err := r.Evaluate(t.Context(), &o); !ready || err != nil || r.Judges(KeyOf(&o).GroupKind()) {
			t.Errorf("%v, %v", ready, err)
		}
	}
	if !some.Judges(schema.GroupKind{Kind: "Secret"}) {
		t.Error("no rule judges Secrets")
	}
}

// TestAnExpressionOfTooHighACostIsAnError compares each pair of 1,000 elements.
func TestAnExpressionOfTooHighACostIsAnError(t *testing.T) {
	ready, err := CompileReady(t.Context(), []shipper.ReadyRule{
		{Kind: "ConfigMap", Expression: `object.list.all(a, object.list.all(b, a <= b || a > b))`},
	})
	if err != nil {
		t.Fatal(err)
	}
	o := named("v1", "ConfigMap", "work", "a")
	list := make([]any, 1000)
	for i := range list {
		list[i] = int64(i)
	}
	o.Object["list"] = list
	got, _, err := ready.Evaluate(t.Context(), &o)
	if got || err == nil || !strings.Contains(err.Error(), "cost limit exceeded") {
		t.Errorf("%v, %v", got, err)
	}
	o.Object["list"] = list[:10]
	if got, _, err := ready.Evaluate(t.Context(), &o); !got || err != nil {
		t.Errorf("10 elements: %v, %v", got, err)
	}
}

func TestCompileReadyEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rule := shipper.ReadyRule{Kind: "ConfigMap", Expression: "true"}
	if err := CheckReady(ctx, rule, environment.NewExpressions); !errors.Is(err, boundedcel.ErrBusy) {
		t.Errorf("CheckReady gives %v", err)
	}
	if _, err := CompileReady(ctx, []shipper.ReadyRule{rule}); !errors.Is(err, boundedcel.ErrBusy) {
		t.Errorf("CompileReady gives %v", err)
	}
}
