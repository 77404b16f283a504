// SPDX-License-Identifier: Apache-2.0

package override_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	rules "shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/override"
)

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"app":"web"},"annotations":{"a":"b"}},
"spec":{"replicas":3,"template":{"metadata":{"labels":{"shipper-app":"web"}},
"spec":{"containers":[{"name":"a","image":"x:1"},{"name":"b"}]}}}}`

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	out := map[string]any{}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: out}
}

func change(t *testing.T, patch string) rules.Change {
	t.Helper()
	selected := rules.Select([]shipper.OverriddenResource{{Group: "apps", Kind: "Deployment"}})
	out := rules.Change{Override: "work/a", Namespace: "work", Selected: selected}
	if patch == "delete" {
		out.Delete = true
		return out
	}
	if err := json.Unmarshal([]byte(patch), &out.Patch); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestChangesAreMadeInTheirOrder(t *testing.T) {
	for name, c := range map[string]struct {
		patches []string
		want    string // empty: the object is left out
	}{
		"numbers stay numbers": {
			[]string{`[{"op":"replace","path":"/spec/replicas","value":1}]`}, strings.Replace(deployment, `"replicas":3`, `"replicas":1`, 1),
		},
		"the later change wins": {
			[]string{`[{"op":"replace","path":"/metadata/labels/app","value":"x"}]`, `[{"op":"replace","path":"/metadata/labels/app","value":"y"}]`},
			strings.Replace(deployment, `{"app":"web"}`, `{"app":"y"}`, 1),
		},
		"an item of a list": {
			[]string{`[{"op":"remove","path":"/spec/template/spec/containers/0"}]`},
			strings.Replace(deployment, `{"name":"a","image":"x:1"},`, ``, 1),
		},
		"a deletion is final": {[]string{`delete`, `[{"op":"replace","path":"/metadata/labels/app","value":"y"}]`}, ``},
		"all labels but those of Shipper": {
			[]string{`[{"op":"add","path":"/metadata/labels","value":{"b":"c"}}]`},
			strings.Replace(deployment, `{"app":"web"}`, `{"b":"c"}`, 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, deployment)
			var changes []rules.Change
			for _, patch := range c.patches {
				changes = append(changes, change(t, patch))
			}
			got, err := override.Apply(t.Context(), o, "work", changes)
			if err != nil {
				t.Fatal(err)
			}
			var want *unstructured.Unstructured
			if c.want != "" {
				want = object(t, c.want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(object(t, deployment), o); diff != "" {
				t.Errorf("the given object was changed: %s", diff)
			}
		})
	}
}

// TestNoPatchMakesAnotherObject has the attacks on what decides who may place an object, and whose it is. Such
// patches may be stored while no webhook is called.
func TestNoPatchMakesAnotherObject(t *testing.T) {
	for name, patch := range map[string]string{
		"another kind":                  `[{"op":"replace","path":"/kind","value":"ClusterRole"}]`,
		"another version":               `[{"op":"replace","path":"/apiVersion","value":"v1"}]`,
		"another name":                  `[{"op":"replace","path":"/metadata/name","value":"kube-proxy"}]`,
		"another namespace":             `[{"op":"add","path":"/metadata/namespace","value":"kube-system"}]`,
		"an owner":                      `[{"op":"add","path":"/metadata/ownerReferences","value":[]}]`,
		"a status":                      `[{"op":"add","path":"/status","value":{}}]`,
		"the whole object":              `[{"op":"replace","path":"","value":{"apiVersion":"v1","kind":"Secret","metadata":{"name":"web"}}}]`,
		"all metadata":                  `[{"op":"replace","path":"/metadata","value":{"name":"other"}}]`,
		"a name that is moved":          `[{"op":"move","from":"/metadata/name","path":"/metadata/labels/x"}]`,
		"a label of Shipper":            `[{"op":"add","path":"/metadata/labels/shipper-app","value":"other"}]`,
		"all labels, with Shipper's":    `[{"op":"add","path":"/metadata/labels","value":{"shipper-owned-by":"x"}}]`,
		"a label of Shipper on Pods":    `[{"op":"replace","path":"/spec/template/metadata/labels","value":{}}]`,
		"a selector of Shipper's Pods":  `[{"op":"add","path":"/spec/selector","value":{"matchLabels":{"shipper-app":"other"}}}]`,
		"an owner of placed objects":    `[{"op":"add","path":"/metadata/annotations/shipper.booking.com~1owner","value":"other/app"}]`,
		"a hook of Helm":                `[{"op":"add","path":"/metadata/annotations/helm.sh~1hook","value":"pre-install"}]`,
		"an object that outlasts it":    `[{"op":"add","path":"/metadata/annotations/helm.sh~1resource-policy","value":"keep"}]`,
		"a label that is no text":       `[{"op":"add","path":"/metadata/labels/a","value":1}]`,
		"labels that are no map":        `[{"op":"replace","path":"/metadata/labels","value":"x"}]`,
		"something else than an object": `[{"op":"replace","path":"","value":[]}]`,
		"nothing":                       `[{"op":"replace","path":"","value":null}]`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := override.Apply(t.Context(), object(t, deployment), "work", []rules.Change{change(t, patch)})
			if !override.Failed(err) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestWhyAChangeFails(t *testing.T) {
	const end = "; correct the ResourceOverride, and edit the Application for a Release with it"
	unset := change(t, "delete")
	unset.Failed = "patch[0]: ${cluster.labels['a']} has no value"
	for name, c := range map[string]struct {
		change rules.Change
		want   string
	}{
		"no such path": {
			change(t, `[{"op":"replace","path":"/spec/replicas","value":1},{"op":"replace","path":"/spec/secret","value":"s3cret"}]`),
			`Deployment "web" cannot be overridden: ResourceOverride work/a rules[0].patch[1] (replace /spec/secret) does not apply: ` +
				`the object has no such path; correct it, or add first what contains it` + end,
		},
		"nothing to move": {
			change(t, `[{"op":"move","from":"/spec/x","path":"/spec/y"}]`),
			`Deployment "web" cannot be overridden: ResourceOverride work/a rules[0].patch[0] (move from /spec/x to /spec/y) does not apply: ` +
				`the object has no such path; correct it, or add first what contains it` + end,
		},
		"a test": {
			change(t, `[{"op":"test","path":"/spec/replicas","value":1}]`),
			`Deployment "web" cannot be overridden: ResourceOverride work/a rules[0].patch[0] (test /spec/replicas) fails: ` +
				`the object has another value there` + end,
		},
		"a variable": {
			unset,
			`Deployment "web" cannot be overridden: ResourceOverride work/a rules[0]: patch[0]: ${cluster.labels['a']} has no value` + end,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := override.Apply(t.Context(), object(t, deployment), "work", []rules.Change{c.change})
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestAnObjectThatNoChangeConcernsIsTheSame(t *testing.T) {
	o := object(t, deployment)
	other := change(t, "delete")
	other.Namespace = "other"
	if got, err := override.Apply(t.Context(), o, "work", []rules.Change{other}); got != o || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestWhatRulesCopyIsBoundedTogether: each rule alone copies less than the bound.
func TestWhatRulesCopyIsBoundedTogether(t *testing.T) {
	large := `{"op":"add","path":"/spec/a","value":"` + strings.Repeat("x", 1<<20) + `"}`
	copies := `{"op":"copy","from":"/spec/a","path":"/spec/b"},{"op":"remove","path":"/spec/b"}`
	for sentence, c := range map[string]struct {
		changes []rules.Change
		want    string
	}{
		"less than 3 MiB": {[]rules.Change{change(t, "["+large+"]"), change(t, "["+copies+"]"), change(t, "["+copies+"]")}, ""},
		"more": {
			[]rules.Change{change(t, "["+large+","+copies+"]"), change(t, "["+copies+"]"), change(t, "["+copies+"]")},
			`Deployment "web" cannot be overridden: ResourceOverride work/a rules[0].patch[0] (copy /spec/b) does not apply: the operations on ` +
				`one object may copy 3 MiB together; correct the ResourceOverride, and edit the Application for a Release with it`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := ""
			if _, err := override.Apply(t.Context(), object(t, deployment), "work", c.changes); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNothingIsAppliedOnceTheContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := override.Apply(ctx, object(t, deployment), "work", []rules.Change{change(t, "delete")})
	if got != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", got, err)
	}
}
