// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"

	"shipper.dev/shipper/manifests"
)

// granted are rights, each as "verb resource.group namespace/name".
type granted []string

// Authorize is authorizer.UnconditionalAuthorizer.
func (g granted) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	asked := fmt.Sprintf("%s %s.%s %s/%s", a.GetVerb(), a.GetResource(), a.GetAPIGroup(), a.GetNamespace(), a.GetName())
	if slices.Contains(g, asked) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// policyOf compiles a policy as the API server does.
func policyOf(t *testing.T, name string) validating.Validator {
	t.Helper()
	o, err := manifests.Object(manifests.Policy, "ValidatingAdmissionPolicy", name)
	if err != nil {
		t.Fatal(err)
	}
	var p admissionregistrationv1.ValidatingAdmissionPolicy
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &p); err != nil {
		t.Fatal(err)
	}
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	with := cel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
	without := cel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil}
	parser, err := celgo.NewEnv()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range p.Spec.Variables {
		if _, reserved := parser.Parse(v.Name); reserved.Err() != nil {
			t.Fatalf("variable %s of %s: %v", v.Name, name, reserved.Err())
		}
		one := compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, with, environment.NewExpressions)
		if one.Error != nil {
			t.Fatalf("variable %s of %s: %v", v.Name, name, one.Error)
		}
	}
	var matches, validations, messages []cel.ExpressionAccessor
	for i := range p.Spec.MatchConditions {
		matches = append(matches, (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i]))
	}
	for _, v := range p.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		message := cel.ExpressionAccessor(nil)
		if v.MessageExpression != "" {
			message = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
		messages = append(messages, message)
	}
	compile := func(all []cel.ExpressionAccessor, may cel.OptionalVariableDeclarations) cel.ConditionEvaluator {
		out := compiler.CompileCondition(all, may, environment.NewExpressions)
		for _, err := range out.CompilationErrors() {
			t.Fatalf("%s: %v", name, err)
		}
		return out
	}
	matcher := matchconditions.NewMatcher(compile(matches, with), p.Spec.FailurePolicy, "policy", "validate", name)
	return validating.NewValidator(
		compile(validations, with), matcher, compile(nil, with), compile(messages, without), p.Spec.FailurePolicy, nil,
	)
}

// TestPoliciesCompile compiles all policies of the management cluster.
func TestPoliciesCompile(t *testing.T) {
	all, err := manifests.Objects(manifests.Policy)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		if o.GetKind() == "ValidatingAdmissionPolicy" {
			policyOf(t, o.GetName())
		}
	}
}

// selecting is an Application of namespace work that selects objects, each as "kind.group namespace/name".
func selecting(selectors ...string) *unstructured.Unstructured {
	var list []any
	for _, s := range selectors {
		what, where, _ := strings.Cut(s, " ")
		kind, group, _ := strings.Cut(what, ".")
		namespace, name, _ := strings.Cut(where, "/")
		one := map[string]any{"kind": kind}
		for key, value := range map[string]string{"group": group, "namespace": namespace, "name": name} {
			if value != "" {
				one[key] = value
			}
		}
		list = append(list, one)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "web", "namespace": "work"},
		"spec":     map[string]any{"template": map[string]any{"resources": map[string]any{"select": list}}},
	}}
}

// TestThePolicyAsksForTheRightsToPlace evaluates resources.shipper.booking.com within the cost that an API server allows.
func TestThePolicyAsksForTheRightsToPlace(t *testing.T) {
	policy := policyOf(t, "resources.shipper.booking.com")
	const changes, deletes = "this write changes what is placed, or how", "this deletion changes what is placed"
	lacks := func(act, object, more string) string {
		return act + `, and that needs the verb "place" on ` + object + ", which user dev does not have" + more +
			": kubectl auth can-i place " + object
	}
	const orRead = " (or the right to read it, if its kind has namespaces)"
	own, payments, guard := "ConfigMap /web", "ConfigMap payments/", "ClusterRole.rbac.authorization.k8s.io /guard"
	recorded := func(rights string) *unstructured.Unstructured {
		o := selecting("Envelope.shipper.booking.com /guard")
		o.SetAnnotations(map[string]string{"shipper.booking.com/content.rights": rights})
		return o
	}
	ofChart := func(version string) *unstructured.Unstructured {
		o := recorded("namespaces/payments")
		_ = unstructured.SetNestedMap(o.Object, map[string]any{"chart": map[string]any{"version": version}}, "spec", "template")
		return o
	}
	var dozen, hundred []string
	var readDozen granted
	for i := range 100 {
		hundred = append(hundred, fmt.Sprintf("Widget.example.com /%d", i))
		if i < 12 {
			dozen, readDozen = hundred, append(readDozen, fmt.Sprintf("get widgets.example.com work/%d", i))
		}
	}
	for sentence, tc := range map[string]struct {
		before, after *unstructured.Unstructured // no object after a deletion
		rights        granted
		want          []string
	}{
		"what is no longer selected": {before: selecting(own, payments, guard), after: selecting(own), want: []string{
			lacks(changes, "namespaces/payments", ""), lacks(changes, "clusterroles.rbac.authorization.k8s.io/guard", ""),
		}},
		"with the rights": {
			before: selecting(own, payments, guard), after: selecting(own),
			rights: granted{"place namespaces. /payments", "place clusterroles.rbac.authorization.k8s.io /guard"},
		},
		"all Namespaces":       {before: selecting(own), after: selecting(own, "Namespace /"), want: []string{lacks(changes, "namespaces", "")}},
		"the same":             {before: selecting(payments), after: selecting(payments)},
		"a deletion":           {before: selecting(payments), want: []string{lacks(deletes, "namespaces/payments", "")}},
		"of the own namespace": {before: selecting(own, "Widget.example.com work/a")},
		"a kind that may have no namespace": {
			before: selecting("Policy.example.com /a"), want: []string{lacks(deletes, "policies.example.com/a", orRead)},
		},
		"a kind that may have one": {before: selecting("Policy.example.com /a"), rights: granted{"get policies.example.com work/a"}},
		"a kind of Kubernetes has none": {
			before: selecting(guard), rights: granted{"get clusterroles.rbac.authorization.k8s.io work/guard"},
			want: []string{lacks(deletes, "clusterroles.rbac.authorization.k8s.io/guard", "")},
		},
		"what an Envelope has elsewhere": {before: recorded("namespaces/payments,clusterroles.rbac.authorization.k8s.io/guard"), want: []string{
			lacks(deletes, "namespaces/payments", ""), lacks(deletes, "clusterroles.rbac.authorization.k8s.io/guard", ""),
		}},
		"what an Envelope has elsewhere, with the rights": {
			before: recorded("namespaces/payments"), rights: granted{"place namespaces. /payments"},
		},
		"what Envelopes have, of another form": {
			before: recorded("payments"), rights: granted{"place namespaces. /payments"}, want: []string{lacks(deletes, "*.*", "")},
		},
		"what Envelopes have elsewhere is nothing": {before: recorded("none")},
		"what an earlier version placed from Envelopes": {before: func() *unstructured.Unstructured {
			o := selecting("Envelope.shipper.booking.com /guard")
			o.SetAnnotations(map[string]string{"shipper.booking.com/app.highestObservedGeneration": "0"})
			return o
		}(), want: []string{lacks(deletes, "*.*", "")}},
		"Envelopes that were not placed yet":        {before: selecting("Envelope.shipper.booking.com /guard")},
		"a chart, while a Release places Envelopes": {before: ofChart("a"), want: []string{lacks(deletes, "namespaces/payments", "")}},
		"an edit of such a chart":                   {before: ofChart("a"), after: ofChart("b")},
		"an owner of such a chart": {before: ofChart("a"), after: func() *unstructured.Unstructured {
			o := ofChart("b")
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "own", UID: "own"}})
			return o
		}(), want: []string{lacks(changes, "namespaces/payments", "")}},
		"what more Envelopes have than a record holds": {before: recorded("*.*/"), want: []string{lacks(deletes, "*.*", "")}},
		"what an Envelope has elsewhere, to stay": {before: func() *unstructured.Unstructured {
			o := recorded("namespaces/payments")
			_ = unstructured.SetNestedField(o.Object, "None", "spec", "template", "resources", "removal")
			return o
		}()},
		"as many rights as may be asked for": {before: selecting(dozen...), rights: readDozen},
		"more": {before: selecting(hundred...), rights: readDozen, want: []string{
			`what is selected needs more than 12 rights to place an object or a namespace, or the verb "place" on all resources`,
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := refusalsOf(t, policy, "applications", tc.before, tc.after, tc.rights)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}

// refusalsOf are the messages with which a policy refuses a request of user dev; no object is left by a deletion.
func refusalsOf(
	t *testing.T, policy validating.Validator, plural string, before, after *unstructured.Unstructured, rights granted,
) []string {
	t.Helper()
	return refusalsTo(t, "dev", policy, plural, before, after, rights)
}

// refusalsTo are those of a request of another user.
func refusalsTo(
	t *testing.T, by string, policy validating.Validator, plural string, before, after *unstructured.Unstructured, rights granted,
) []string {
	t.Helper()
	operation, now := admission.Delete, runtime.Object(nil)
	if after != nil {
		operation, now = admission.Update, after
	}
	resource := schema.GroupVersionResource{Group: "shipper.booking.com", Version: "v1alpha1", Resource: plural}
	kind := schema.GroupVersionKind{Group: resource.Group, Version: resource.Version, Kind: "Any"}
	request := &admission.VersionedAttributes{VersionedKind: kind, Attributes: admission.NewAttributesRecord(
		now, before, kind, before.GetNamespace(), before.GetName(), resource, "", operation, nil, false, &user.DefaultInfo{Name: by},
	)}
	request.VersionedOldObject = admission.NewLazyObject(before)
	if now != nil {
		request.VersionedObject = admission.NewLazyObject(now)
	}
	var out []string
	for _, decision := range policy.Validate(t.Context(), resource, request, nil, nil, celconfig.RuntimeCELCostBudget, rights).Decisions {
		if decision.Action == validating.ActionDeny {
			out = append(out, decision.Message)
		}
	}
	return out
}

// TestThePolicyKeepsTheRecordOfWhoPlaces evaluates control.shipper.booking.com: who changes spec leaves no other user in app.selected-by.
func TestThePolicyKeepsTheRecordOfWhoPlaces(t *testing.T) {
	policy := policyOf(t, "control.shipper.booking.com")
	const record, refresh, back = "app.selected-by", "app.resources.refresh", "app.rolled-back-to"
	of := func(drift string, annotations ...string) *unstructured.Unstructured {
		o := selecting("ConfigMap /web")
		with := map[string]string{}
		for i := 0; i < len(annotations); i += 2 {
			with["shipper.booking.com/"+annotations[i]] = annotations[i+1]
		}
		o.SetAnnotations(with)
		if err := unstructured.SetNestedField(o.Object, drift, "spec", "driftPolicy"); err != nil {
			t.Fatal(err)
		}
		return o
	}
	const dev, ann = `{"username":"dev"}`, `{"username":"ann"}`
	before := of("Report", record, ann)
	for sentence, tc := range map[string]struct {
		after   *unstructured.Unstructured
		refused bool
	}{
		"nothing":                          {of("Report", record, ann), false},
		"spec":                             {of("Correct", record, ann), true},
		"spec, as the author":              {of("Correct", record, dev), false},
		"spec, with no record":             {of("Correct"), false},
		"a refresh":                        {of("Report", record, ann, refresh, "1"), true},
		"a rollback":                       {of("Report", record, ann, back, "web-1-0"), true},
		"a rollback, as the author":        {of("Report", record, dev, back, "web-1-0"), false},
		"the record alone":                 {of("Report", record, `{"username":"bob"}`), true},
		"the record alone, for the author": {of("Report", record, dev), false},
	} {
		got := refusalsOf(t, policy, "applications", before, tc.after, nil)
		if refused := len(got) > 0; refused != tc.refused {
			t.Errorf("%s: %q", sentence, got)
		}
	}
}

// TestThePolicyProtectsOwners evaluates owners.shipper.booking.com: the garbage collector deletes an object with its owners.
func TestThePolicyProtectsOwners(t *testing.T) {
	policy := policyOf(t, "owners.shipper.booking.com")
	of := func(namespace string, owners ...string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetName("web")
		o.SetNamespace(namespace)
		var refs []metav1.OwnerReference
		for _, kind := range owners {
			refs = append(refs, metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: "a", UID: types.UID(kind)})
		}
		o.SetOwnerReferences(refs)
		return o
	}
	const (
		byShipper = "metadata.ownerReferences is written by Shipper, and the garbage collector deletes the object with an owner: leave it as " +
			"it is (the verb stamp on sequenceruns.shipper.booking.com is needed)"
		mayNot = "the garbage collector deletes the object with the owner that this write adds, and user dev may not delete it: " +
			"kubectl auth can-i delete "
	)
	for sentence, tc := range map[string]struct {
		plural        string
		before, after *unstructured.Unstructured
		rights        granted
		want          []string
	}{
		"a run gets another owner": {
			plural: "sequenceruns", before: of("work", "Shipyard"), after: of("work", "Shipyard", "ConfigMap"), want: []string{byShipper},
		},
		"the owner of a run is replaced": {
			plural: "sequenceruns", before: of("work", "Shipyard"), after: of("work", "ConfigMap"), want: []string{byShipper},
		},
		"the owner of a run is removed": {
			plural: "sequenceruns", before: of("work", "Shipyard"), after: of("work"), want: []string{byShipper},
		},
		"a run, by a user who may stamp": {
			plural: "sequenceruns", before: of("work", "Shipyard"), after: of("work"),
			rights: granted{"stamp sequenceruns.shipper.booking.com work/web"},
		},
		"a run keeps its owner": {plural: "sequenceruns", before: of("work", "Shipyard"), after: of("work", "Shipyard")},
		"a block that the user may not delete": {
			plural: "rolloutblocks", before: of("work"), after: of("work", "ConfigMap"),
			want: []string{mayNot + "rolloutblocks.shipper.booking.com/web -n work"},
		},
		"a block that the user may delete": {
			plural: "rolloutblocks", before: of("work"), after: of("work", "ConfigMap"),
			rights: granted{"delete rolloutblocks.shipper.booking.com work/web"},
		},
		"a Cluster": {
			plural: "clusters", before: of(""), after: of("", "ConfigMap"), want: []string{mayNot + "clusters.shipper.booking.com/web"},
		},
		"a Check that loses one": {plural: "checks", before: of("work", "ConfigMap"), after: of("work")},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, refusalsOf(t, policy, tc.plural, tc.before, tc.after, tc.rights)); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}
