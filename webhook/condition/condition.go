// SPDX-License-Identifier: Apache-2.0

// Package condition asks the matchConditions of RolloutBlocks, which are CEL, about requests. The environment is that of
// the API server's own matchConditions, with its limits to what an expression may cost.
package condition

import (
	"context"
	"encoding/json"
	"fmt"
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

// kept is how many sets of conditions are kept compiled.
const kept = 1024

// Conditions compiles expressions, once, and asks them. It is safe for concurrent use.
type Conditions struct {
	compiler cel.ConditionCompiler
	compiled *lru.Cache // of cel.ConditionEvaluator, by the expressions
}

// New returns Conditions.
func New() *Conditions {
	env := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	return &Conditions{compiler: cel.NewConditionCompiler(env), compiled: lru.New(kept)}
}

// expression is what the compiler wants of a RolloutBlockMatchCondition.
type expression string

// GetExpression is the expression's text.
func (e expression) GetExpression() string { return string(e) }

// ReturnTypes are what it may be.
func (e expression) ReturnTypes() []*celgo.Type { return []*celgo.Type{celgo.BoolType} }

// Validate says which expressions cannot be compiled. path is that of the conditions.
func (c *Conditions) Validate(path *field.Path, conditions []shipper.RolloutBlockMatchCondition) field.ErrorList {
	var errs field.ErrorList
	for i, m := range conditions {
		evaluator := c.compile(conditions[i : i+1])
		for _, err := range evaluator.CompilationErrors() {
			errs = append(errs, field.Invalid(path.Index(i).Child("expression"), m.Expression, err.Error()))
		}
	}
	return errs
}

// Match tells whether all conditions are true for a request. One that cannot be answered counts as true: a freeze does
// not end because an expression does not know some kind of object.
func (c *Conditions) Match(
	ctx context.Context, conditions []shipper.RolloutBlockMatchCondition, req *webhook.Request,
) bool {
	attributes, err := attributesOf(req)
	if err != nil {
		return true
	}
	asked := req.AdmissionRequest
	asked.Object, asked.OldObject = runtime.RawExtension{}, runtime.RawExtension{}
	results, _, err := c.compile(conditions).ForInput(ctx, attributes, &asked, cel.OptionalVariableBindings{}, nil,
		celconfig.RuntimeCELCostBudgetMatchConditions)
	if err != nil {
		return true
	}
	for _, r := range results {
		if r.Error == nil && r.EvalResult == types.False {
			return false
		}
	}
	return true
}

func (c *Conditions) compile(conditions []shipper.RolloutBlockMatchCondition) cel.ConditionEvaluator {
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
	accessors := make([]cel.ExpressionAccessor, len(texts))
	for i, text := range texts {
		accessors[i] = expression(text)
	}
	evaluator := c.compiler.CompileCondition(accessors, cel.OptionalVariableDeclarations{}, environment.StoredExpressions)
	c.compiled.Add(key, evaluator)
	return evaluator
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

// decode returns nil, and not a nil of some type, where there is no object.
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
