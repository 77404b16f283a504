// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	celplugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"

	"shipper.dev/shipper/certs/reviewpath"
	"shipper.dev/shipper/manifests"
	"shipper.dev/shipper/test/memory"
)

// rule is a webhook of manifests/webhook. Nothing in it changes, so that all runs share it.
type rule struct {
	name, path, group, resource string
	operations                  []admissionregistrationv1.OperationType
	exempt                      []string // namespaces
	ignore                      bool     // when no replica answers
	timeout                     time.Duration
	conditions                  matchconditions.Matcher
}

// rules are the webhooks in the order in which they are called.
type rules struct{ mutating, validating []rule }

// admissionRules reads manifests/webhook.
var admissionRules = sync.OnceValue(func() (out rules) {
	objects, err := manifests.Objects(manifests.Webhook)
	if err != nil {
		panic(err) // they are embedded
	}
	for _, o := range objects {
		// Both kinds have the fields that are read here.
		var configuration admissionregistrationv1.ValidatingWebhookConfiguration
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &configuration); err != nil {
			panic(err)
		}
		for _, w := range configuration.Webhooks {
			if o.GetKind() == "MutatingWebhookConfiguration" {
				out.mutating = append(out.mutating, newRules(w)...)
			} else {
				out.validating = append(out.validating, newRules(w)...)
			}
		}
	}
	return out
})

// newRules has one rule for each resource.
func newRules(w admissionregistrationv1.ValidatingWebhook) (out []rule) {
	var expressions []celplugin.ExpressionAccessor
	for i := range w.MatchConditions {
		expressions = append(expressions, (*matchconditions.MatchCondition)(&w.MatchConditions[i]))
	}
	compiler := celplugin.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	compiled := compiler.CompileCondition(expressions, celplugin.OptionalVariableDeclarations{}, environment.StoredExpressions)
	for _, r := range w.Rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				x := rule{
					name: w.Name, path: reviewpath.HookOf(w.Name), group: group, resource: resource, operations: r.Operations,
					ignore: *w.FailurePolicy == admissionregistrationv1.Ignore, timeout: time.Duration(*w.TimeoutSeconds) * time.Second,
					conditions: matchconditions.NewMatcher(compiled, w.FailurePolicy, "webhook", "simulation", w.Name),
				}
				if w.NamespaceSelector != nil {
					for _, e := range w.NamespaceSelector.MatchExpressions {
						x.exempt = append(x.exempt, e.Values...) // by their names, with NotIn
					}
				}
				out = append(out, x)
			}
		}
	}
	return out
}

// matches reports whether the API server sends a write to the webhook.
func (x rule) matches(r *memory.Review) (bool, error) {
	if x.group != r.Kind.Group || x.resource != r.Kind.Resource || r.Subresource != "" ||
		r.Namespace != "" && slices.Contains(x.exempt, r.Namespace) ||
		!slices.Contains(x.operations, admissionregistrationv1.OperationType(r.Operation)) {
		return false, nil
	}
	kind := schema.GroupVersionKind{Group: r.Kind.Group, Version: r.Kind.Version, Kind: r.Kind.Kind}
	resource := schema.GroupVersionResource{Group: r.Kind.Group, Version: r.Kind.Version, Resource: r.Kind.Resource}
	object, old := asObject(r.Object), asObject(r.Old)
	by := &user.DefaultInfo{Name: r.User.GetName(), UID: r.User.GetUID(), Groups: r.User.GetGroups(), Extra: r.User.GetExtra()}
	attributes := &admission.VersionedAttributes{VersionedKind: kind, Attributes: admission.NewAttributesRecord(
		object, old, kind, r.Namespace, r.Name, resource, "", admission.Operation(r.Operation), nil, r.DryRun, by,
	)}
	if object != nil {
		attributes.VersionedObject.Set(object)
	}
	if old != nil {
		attributes.VersionedOldObject.Set(old)
	}
	result := x.conditions.Match(r.Request.Context(), attributes, nil, nil)
	if result.Error != nil {
		return false, fmt.Errorf("matchConditions of %s: %w", x.name, result.Error)
	}
	return result.Matches, nil
}

// asObject is an untyped nil where there is no object.
func asObject(u *unstructured.Unstructured) runtime.Object {
	if u == nil {
		return nil
	}
	return u
}
