// SPDX-License-Identifier: Apache-2.0

// Package matchconditions evaluates the matchConditions of RolloutBlocks, which are CEL, on requests. The environment and the
// cost limits are those of the API server's own matchConditions.
package matchconditions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/utils/lru"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// kept is how many sets of compiled conditions are cached.
const kept = 1024

// budget bounds the cost of all conditions evaluated for one request: about a quarter of a second.
const budget = celconfig.RuntimeCELCostBudgetMatchConditions

// Conditions compiles expressions, once, and evaluates them. It is safe for concurrent use.
type Conditions struct {
	compiler cel.ConditionCompiler
	compiled *lru.Cache // of cel.ConditionEvaluator, by the expressions
}

// New returns Conditions.
func New() *Conditions {
	env := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	return &Conditions{compiler: cel.NewConditionCompiler(env), compiled: lru.New(kept)}
}

// expression is a RolloutBlockMatchCondition for the compiler.
type expression string

// GetExpression is the expression's text.
func (e expression) GetExpression() string { return string(e) }

// ReturnTypes are its permitted types.
func (e expression) ReturnTypes() []*celgo.Type { return []*celgo.Type{celgo.BoolType} }

// Validate returns errors for expressions that do not compile. path is that of the conditions. It refuses CEL features that
// only this version of Shipper has: another version may have to evaluate them.
func (c *Conditions) Validate(path *field.Path, conditions []shipper.RolloutBlockMatchCondition) field.ErrorList {
	var errs field.ErrorList
	for i, m := range conditions {
		for _, err := range c.compile([]string{m.Expression}, environment.NewExpressions).CompilationErrors() {
			errs = append(errs, field.Invalid(path.Index(i).Child("expression"), m.Expression, err.Error()))
		}
	}
	return errs
}

// Match returns a function that reports whether all of some conditions are true for a request. An expression that fails or
// takes too long counts as true, so that it does not end a freeze.
func (c *Conditions) Match(
	ctx context.Context, req *webhook.Request,
) func(conditions []shipper.RolloutBlockMatchCondition) bool {
	var attributes *admission.VersionedAttributes
	var broken error
	left := int64(budget)
	asked := req.AdmissionRequest
	asked.Object, asked.OldObject = runtime.RawExtension{}, runtime.RawExtension{}
	return func(conditions []shipper.RolloutBlockMatchCondition) bool {
		if attributes == nil && broken == nil {
			attributes, broken = attributesOf(req)
		}
		if broken != nil || left < 0 {
			return true
		}
		var results []cel.EvaluationResult
		var err error
		evaluator := c.evaluator(conditions)
		results, left, err = evaluator.ForInput(ctx, attributes, &asked, cel.OptionalVariableBindings{}, nil, left)
		return err != nil || !slices.ContainsFunc(results, func(r cel.EvaluationResult) bool {
			return r.Error == nil && r.EvalResult == types.False
		})
	}
}

// evaluator compiles conditions, with a cache.
func (c *Conditions) evaluator(conditions []shipper.RolloutBlockMatchCondition) cel.ConditionEvaluator {
	texts := make([]string, len(conditions))
	for i, m := range conditions {
		texts[i] = m.Expression
	}
	key := strings.Join(texts, "\x00")
	if known, ok := c.compiled.Get(key); ok {
		if evaluator, ok := known.(cel.ConditionEvaluator); ok {
			return evaluator
		}
	}
	evaluator := c.compile(texts, environment.StoredExpressions)
	c.compiled.Add(key, evaluator)
	return evaluator
}

func (c *Conditions) compile(texts []string, mode environment.Type) cel.ConditionEvaluator {
	accessors := make([]cel.ExpressionAccessor, len(texts))
	for i, text := range texts {
		accessors[i] = expression(text)
	}
	return c.compiler.CompileCondition(accessors, cel.OptionalVariableDeclarations{}, mode)
}

// attributesOf is a request as expressions see it.
func attributesOf(req *webhook.Request) (*admission.VersionedAttributes, error) {
	object, err := decode(req.Object)
	if err != nil {
		return nil, err
	}
	old, err := decode(req.OldObject)
	if err != nil {
		return nil, err
	}
	gvk := schema.GroupVersionKind{Group: req.Kind.Group, Version: req.Kind.Version, Kind: req.Kind.Kind}
	resource := schema.GroupVersionResource{
		Group: req.Resource.Group, Version: req.Resource.Version, Resource: req.Resource.Resource,
	}
	out := &admission.VersionedAttributes{
		VersionedKind: gvk,
		Attributes: admission.NewAttributesRecord(object, old, gvk, req.Namespace, req.Name, resource, req.SubResource,
			admission.Operation(req.Operation), nil, req.DryRun != nil && *req.DryRun, nil),
	}
	if object != nil {
		out.VersionedObject.Set(object)
	}
	if old != nil {
		out.VersionedOldObject.Set(old)
	}
	return out, nil
}

// decode returns an untyped nil if there is no object.
func decode(raw runtime.RawExtension) (runtime.Object, error) {
	if len(raw.Raw) == 0 {
		return nil, nil
	}
	out := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw.Raw, &out.Object); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	return out, nil
}
