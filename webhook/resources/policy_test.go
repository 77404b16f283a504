// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/cel/environment"

	"shipper.dev/shipper/apis/rules/rights"
	"shipper.dev/shipper/manifests"
)

// The policy compares the annotation with a text that it builds itself: another escape, and it would refuse what the webhook wrote.
func TestThePolicyWritesUsersAsTheWebhookDoes(t *testing.T) {
	policy, err := manifests.Object(manifests.Policy, "ValidatingAdmissionPolicy", "control.shipper.booking.com")
	if err != nil {
		t.Fatal(err)
	}
	variables, _, err := unstructured.NestedSlice(policy.Object, "spec", "variables")
	if err != nil {
		t.Fatal(err)
	}
	expression := ""
	for _, v := range variables {
		if v := v.(map[string]any); v["name"] == "user" {
			expression = v["expression"].(string)
		}
	}
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: environment.DefaultCompatibilityVersion(), EnvOptions: []cel.EnvOption{cel.Variable("request", cel.DynType)},
	})
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := set.NewExpressionsEnv().Compile(expression)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := set.NewExpressionsEnv().Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	for name, who := range map[string]authenticationv1.UserInfo{
		"a name":                 {Username: "ann"},
		"a user with all fields": {Username: "ann", UID: "7", Groups: []string{"system:authenticated", "team-a"}},
		"one with groups alone":  {Username: "system:serviceaccount:work:ci", Groups: []string{"system:serviceaccounts"}},
		"characters of JSON":     {Username: `a"b\c<d>&é`, Groups: []string{`"`, `\`, "<"}},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := rights.FormatSelector(who)
			if err != nil {
				t.Fatal(err)
			}
			info := map[string]any{"username": who.Username}
			if who.UID != "" {
				info["uid"] = who.UID
			}
			if who.Groups != nil {
				info["groups"] = who.Groups
			}
			got, _, err := program.Eval(map[string]any{"request": map[string]any{"userInfo": info}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got.Value()); diff != "" {
				t.Errorf("text (-webhook +policy):\n%s", diff)
			}
			if back, ok := rights.ParseSelector(want); !ok || !cmp.Equal(who, back) {
				t.Errorf("it is read as %+v", back)
			}
		})
	}
	if _, ok := rights.ParseSelector("{}"); ok {
		t.Error("an annotation without a name is of a user")
	}
}
