// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/environment"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward/boundedcel"
)

// language is CEL with the variable object. The functions are those of checks.
var language = &boundedcel.Language{
	Variables: []cel.EnvOption{cel.Variable("object", cel.DynType)},
	Functions: slices.Concat(
		boundedcel.Operators, boundedcel.Conversions, boundedcel.Texts, boundedcel.Times, boundedcel.Aggregations),
	Page:   "docs/checks.md",
	Accept: acceptBool,
}

var environments = sync.OnceValues(language.Environment)

func acceptBool(out *cel.Type) error {
	switch out.Kind() {
	case types.BoolKind:
		return nil
	case types.DynKind:
		return errors.New("must be bool, is dyn: compare it, as in object.status.ready == true")
	default:
		return fmt.Errorf("must be bool, is %s", out)
	}
}

// CheckReady returns an error if the expression of a ReadyRule does not compile to a bool. Use environment.NewExpressions when a user
// writes it. The error is boundedcel.ErrBusy if ctx ended before the expression was looked at.
func CheckReady(ctx context.Context, rule shipper.ReadyRule, mode environment.Type) error {
	_, err := compile(ctx, rule.Expression, mode)
	return err
}

// compile explains the error that most users meet first: fields of an object have no type.
func compile(ctx context.Context, expression string, mode environment.Type) (*boundedcel.Program, error) {
	program, err := language.Compile(ctx, expression, mode, environments)
	if errors.Is(err, boundedcel.ErrNotScalar) {
		err = fmt.Errorf("%w; of two fields, convert one, as in object.status.replicas == int(object.spec.replicas)", err)
	}
	return program, err
}

// Ready judges objects by ReadyRules. It is safe for concurrent use.
type Ready struct {
	programs map[schema.GroupKind][]*boundedcel.Program
}

// CompileReady compiles rules that CheckReady has accepted. Its error names the rule by its index; it wraps boundedcel.ErrBusy if ctx ended
// before all were compiled.
func CompileReady(ctx context.Context, rules []shipper.ReadyRule) (*Ready, error) {
	out := &Ready{programs: map[schema.GroupKind][]*boundedcel.Program{}}
	for i, rule := range rules {
		program, err := compile(ctx, rule.Expression, environment.StoredExpressions)
		if err != nil {
			return nil, fmt.Errorf("ready[%d].expression: %w", i, err)
		}
		gk := schema.GroupKind{Group: rule.Group, Kind: rule.Kind}
		out.programs[gk] = append(out.programs[gk], program)
	}
	return out, nil
}

// Judges reports whether a rule is for the kind.
func (r *Ready) Judges(gk schema.GroupKind) bool { return r != nil && len(r.programs[gk]) > 0 }

// Evaluate reports whether all rules for the kind of an object are true; it is true without a rule. A field that is missing and too high
// a cost are errors: the object is not known to be ready. cost is that of the evaluations in units of CEL.
func (r *Ready) Evaluate(ctx context.Context, o *unstructured.Unstructured) (ready bool, cost uint64, err error) {
	if r == nil {
		return true, 0, nil
	}
	for _, program := range r.programs[KeyOf(o).GroupKind()] {
		ready, one, err := evaluate(ctx, program, o)
		if cost += one; !ready || err != nil {
			return false, cost, err
		}
	}
	return true, cost, nil
}

func evaluate(ctx context.Context, program *boundedcel.Program, o *unstructured.Unstructured) (ready bool, cost uint64, err error) {
	out, cost, err := program.Eval(ctx, map[string]any{"object": o.Object})
	if err != nil {
		return false, cost, fmt.Errorf("the expression for ready %w", err)
	}
	ready, ok := out.Value().(bool)
	if !ok {
		return false, cost, fmt.Errorf("the expression for ready must be bool, is %s", out.Type().TypeName())
	}
	return ready, cost, nil
}
