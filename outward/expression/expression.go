// SPDX-License-Identifier: Apache-2.0

// Package expression evaluates the CEL expressions that judge a measurement: what queries gave, or what a server answered.
//
// NaN compares as in IEEE 754: every comparison is false, except !=. max and min of a list give NaN if it is the first element and skip
// it elsewhere; sum gives NaN. Division of doubles by 0.0 gives an infinity or NaN; infinities compare as numbers.
package expression

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/utils/lru"

	"shipper.dev/shipper/outward/boundedcel"
)

// kept is how many compiled expressions are cached.
const kept = 1024

// ErrBusy means that ctx ended while other expressions were compiled.
var ErrBusy = boundedcel.ErrBusy

// Inputs are the variables of an expression.
type Inputs struct {
	// Queries are the names of variables of type double.
	Queries []string
	// List makes the type list(double).
	List bool
	// HTTP declares response.status, an int, and response.json, of any type.
	HTTP bool
	// Args are the fields of args, which are strings.
	Args []string
}

// sorted is a copy whose names are sorted, so that equal Inputs have the same key.
func (in Inputs) sorted() Inputs {
	in.Queries, in.Args = slices.Sorted(slices.Values(in.Queries)), slices.Sorted(slices.Values(in.Args))
	return in
}

// key identifies equal Inputs.
func (in Inputs) key() string {
	return fmt.Sprintf("%q %t %t %q", in.Queries, in.List, in.HTTP, in.Args)
}

// Values are the values of the variables that Inputs declare.
type Values struct {
	// Numbers are the values of queries, Lists if Inputs.List.
	Numbers map[string]float64
	Lists   map[string][]float64
	// Status and JSON, as encoding/json decodes it, are those of the response.
	Status int
	JSON   any
	Args   map[string]string
}

// language is CEL with the variables of in.
func language(in Inputs) *boundedcel.Language {
	l := &boundedcel.Language{
		Functions: slices.Concat(
			boundedcel.Operators, boundedcel.Conversions, boundedcel.Texts, boundedcel.Times, boundedcel.Aggregations),
		Page:   "docs/checks.md",
		Accept: acceptBool,
		Hint:   func(tree *cel.Ast) string { return hint(tree, in) },
	}
	declare := func(name, typeName string, fields map[string]*apiservercel.DeclType) {
		declared := map[string]*apiservercel.DeclField{}
		for field, fieldType := range fields {
			declared[field] = apiservercel.NewDeclField(field, fieldType, true, nil, nil)
		}
		object := apiservercel.NewObjectType(typeName, declared)
		l.Types, l.Variables = append(l.Types, object), append(l.Variables, cel.Variable(name, object.CelType()))
	}
	args := map[string]*apiservercel.DeclType{}
	for _, name := range in.Args {
		args[name] = apiservercel.StringType
	}
	declare("args", "shipper.Args", args)
	if in.HTTP {
		declare("response", "shipper.Response", map[string]*apiservercel.DeclType{
			"status": apiservercel.IntType, "json": apiservercel.DynType,
		})
	}
	query := cel.DoubleType
	if in.List {
		query = cel.ListType(cel.DoubleType)
	}
	for _, name := range in.Queries {
		l.Variables = append(l.Variables, cel.Variable(name, query))
	}
	return l
}

func acceptBool(out *cel.Type) error {
	switch out.Kind() {
	case types.BoolKind:
		return nil
	case types.DynKind:
		return errors.New("must be bool, is dyn: compare it, as in response.json.ok == true")
	default:
		return fmt.Errorf("must be bool, is %s", out)
	}
}

// ofNumbers are the operators that have no meaning for a list and a number.
var ofNumbers = []string{
	operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.Equals, operators.NotEquals,
	operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Negate,
}

// hint explains two frequent errors: a list that is used as a number, and an int where CEL has only functions of two doubles.
func hint(tree *cel.Ast, in Inputs) string {
	list, double := "", ""
	ast.PreOrderVisit(tree.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || !slices.Contains(ofNumbers, e.AsCall().FunctionName()) {
			return
		}
		for _, arg := range e.AsCall().Args() {
			switch {
			case arg.Kind() == ast.IdentKind && in.List && slices.Contains(in.Queries, arg.AsIdent()):
				list = fmt.Sprintf("%s is a list: use %[1]s.max(), %[1]s.min() or %[1]s.sum()", arg.AsIdent())
			case arg.Kind() == ast.LiteralKind && len(in.Queries) > 0 && arg.AsLiteral().Type() == types.IntType:
				double = fmt.Sprintf("queries give doubles: write %v.0", arg.AsLiteral().Value())
			}
		}
	}))
	return cmp.Or(list, double)
}

// Check returns an error if an expression does not compile to a bool. With environment.NewExpressions it refuses CEL features that
// only this version of Shipper has: another version may have to evaluate the expression. The error is ErrBusy if the expression was
// not looked at.
func Check(ctx context.Context, text string, in Inputs, mode environment.Type) error {
	_, err := compile(ctx, text, in, mode)
	return err
}

func compile(ctx context.Context, text string, in Inputs, mode environment.Type) (*boundedcel.Program, error) {
	l := language(in)
	return l.Compile(ctx, text, mode, l.Environment)
}

// Cache compiles expressions and caches the compiled ones. It is safe for concurrent use.
type Cache struct{ programs *lru.Cache } // of *Program, by inputs and expression

// NewCache returns an empty Cache.
func NewCache() *Cache { return &Cache{lru.New(kept)} }

// Program is a compiled expression. It is safe for concurrent use.
type Program struct {
	compiled *boundedcel.Program
	in       Inputs
}

// Compile compiles an expression that Check has accepted. The error is ErrBusy if the expression was not looked at.
func (c *Cache) Compile(ctx context.Context, text string, in Inputs) (*Program, error) {
	in = in.sorted()
	key := in.key() + text
	if known, ok := c.programs.Get(key); ok {
		if program, ok := known.(*Program); ok {
			return program, nil
		}
	}
	compiled, err := compile(ctx, text, in, environment.StoredExpressions)
	if err != nil {
		return nil, err
	}
	program := &Program{compiled: compiled, in: in}
	c.programs.Add(key, program)
	return program, nil
}

// Eval evaluates the expression. A value that is missing, a JSON that has other fields, and too high a cost are errors, which quote no
// value.
func (p *Program) Eval(ctx context.Context, v Values) (bool, error) {
	out, _, err := p.compiled.Eval(ctx, p.variables(v))
	if err != nil {
		return false, err
	}
	result, ok := out.Value().(bool)
	if !ok {
		return false, fmt.Errorf("must be bool, is %s", out.Type().TypeName())
	}
	return result, nil
}

// variables are the values that Inputs declare.
func (p *Program) variables(v Values) map[string]any {
	args := map[string]any{}
	for _, name := range p.in.Args {
		if value, ok := v.Args[name]; ok {
			args[name] = value
		}
	}
	out := map[string]any{"args": args}
	if p.in.HTTP {
		out["response"] = map[string]any{"status": int64(v.Status), "json": v.JSON}
	}
	for _, name := range p.in.Queries {
		if list, ok := v.Lists[name]; ok && p.in.List {
			out[name] = list
		}
		if number, ok := v.Numbers[name]; ok && !p.in.List {
			out[name] = number
		}
	}
	return out
}
