// SPDX-License-Identifier: Apache-2.0

package boundedcel

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Program is a compiled expression. It is safe for concurrent use.
type Program struct {
	compiled cel.Program
	// names are the fields, variables and literal texts of the expression: an error may quote them.
	names []string
}

// Eval evaluates the expression within Timeout and Budget. Its error quotes nothing of the variables, which may be secret: it is stored
// in a status, which more users may read. cost is in units of CEL.
func (p *Program) Eval(ctx context.Context, variables map[string]any) (out ref.Val, cost uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	out, details, err := p.compiled.ContextEval(ctx, variables)
	if cost = Budget; details != nil && details.ActualCost() != nil {
		cost = *details.ActualCost()
	}
	if err != nil {
		return nil, cost, errors.New("cannot be evaluated: " + p.explain(err.Error()))
	}
	return out, cost, nil
}

// conversion is the error of a conversion, with the names of two types.
var conversion = regexp.MustCompile(`^type conversion error from '[A-Za-z_.]+' to '[A-Za-z_.]+'$`)

// whole are errors without a value.
var whole = []string{
	"no such overload", "divide by zero", "division by zero", "modulus by zero", "integer overflow", "unsigned integer overflow",
	"double overflow", "duration overflow", "timestamp overflow", "NaN values cannot be ordered", "max called on empty list",
	"min called on empty list", "operation cancelled: actual cost limit exceeded", "operation interrupted",
}

// parts are what errors say before a value, and how they are shown without it.
var parts = []struct{ before, shown string }{
	{"no such overload", "no such overload"},
	{"no such attribute", "no such attribute"},
	{"operation interrupted", "operation interrupted"},
	{"operation cancelled", "operation cancelled"},
	{"index ", "an index is out of range"},
	{"unsupported index ", "a list has integers as indexes"},
	{"invalid RFC 3339 timestamp", "a text is no timestamp"},
}

// explain is an error of an evaluation without values. CEL quotes keys, texts and numbers, which may come from outside: only errors that
// are known to have none stay, and names only if the expression itself contains them.
func (p *Program) explain(message string) string {
	for _, one := range []string{"no such key", "no such attribute(s)"} {
		name, is := strings.CutPrefix(message, one+": ")
		switch {
		case !is:
		case slices.Contains(p.names, name):
			return message
		default:
			return one
		}
	}
	if slices.Contains(whole, message) || conversion.MatchString(message) {
		return message
	}
	for _, part := range parts {
		if strings.HasPrefix(message, part.before) {
			return part.shown
		}
	}
	return "an operation failed for a value"
}

// namesOf are the fields, variables and literal texts of an expression.
func namesOf(tree *cel.Ast) []string {
	var out []string
	ast.PostOrderVisit(tree.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.SelectKind:
			out = append(out, e.AsSelect().FieldName())
		case ast.IdentKind:
			out = append(out, e.AsIdent())
		case ast.LiteralKind:
			if text, ok := e.AsLiteral().(types.String); ok {
				out = append(out, string(text))
			}
		}
	}))
	return out
}
