// SPDX-License-Identifier: Apache-2.0

package boundedcel

import (
	"errors"
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// maxReplacement bounds the text that replace inserts, and thus how much longer its result is than its input.
const maxReplacement = 32

// The functions whose time and result are bounded by the size of their arguments. The API server's environment also has functions
// that are not, for example format("%.999999999f") and lists.range(999999999).
var (
	// Operators are also the calls that macros such as all and map expand to.
	Operators = []string{
		operators.Conditional, operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.NotStrictlyFalse,
		operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
		operators.In, operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate,
		operators.Index,
	}
	Conversions = []string{"bool", "double", "duration", "dyn", "int", "string", "timestamp", "uint"}
	// Texts take time that is linear in their arguments, and give no longer text.
	Texts = []string{"contains", "endsWith", "lowerAscii", "size", "startsWith", "trim", "upperAscii"}
	// Rewriting functions take quadratic time or give longer results: the texts that they see must be bounded.
	Rewriting = []string{"charAt", "indexOf", "lastIndexOf", "replace", "split", "substring"}
	Times     = []string{
		"getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours", "getMilliseconds", "getMinutes",
		"getMonth", "getSeconds",
	}
	Aggregations = []string{"max", "min", "sum"}
)

// regular are the functions with regular expressions: compiling one takes up to 100 MB, and the cost of a match does not show that.
var regular = []string{"matches", "find", "findAll"}

// ErrNotScalar means that an expression tests two lists, maps or values of unknown type for equality.
var ErrNotScalar = errors.New("compares lists, maps or dyn(…): compare texts, numbers, booleans or times")

// permit returns an error if an expression has a construct whose cost is not bounded. The type checker may change the names of
// functions, and compiles regular expressions: permit is called before and after it.
func (l *Language) permit(tree *cel.Ast) error {
	var errs []error
	native := tree.NativeRep()
	ast.PostOrderVisit(native.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.StructKind:
			errs = append(errs, errors.New("objects with a type are not available here: use a map"))
		case ast.CallKind:
			if err := l.permitCall(native, e.AsCall()); err != nil {
				errs = append(errs, err)
			}
		}
	}))
	if len(errs) == 0 {
		return nil
	}
	return errs[0]
}

func (l *Language) permitCall(tree *ast.AST, call ast.CallExpr) error {
	name, args := call.FunctionName(), call.Args()
	if call.IsMemberFunction() {
		args = append([]ast.Expr{call.Target()}, args...)
	}
	switch {
	case slices.Contains(regular, name):
		return fmt.Errorf("calls %s: regular expressions are not available here: use startsWith, endsWith or contains", name)
	case !slices.Contains(l.Functions, name):
		return fmt.Errorf("calls %s, which is not available here: %s lists the functions", name, l.Page)
	case name == "replace" && !shortLiteral(args):
		return fmt.Errorf("calls replace with a replacement that is not a literal text of at most %d bytes", maxReplacement)
	case !tree.IsChecked():
		return nil
	}
	scalar := func(e ast.Expr) bool { return isScalar(tree.GetType(e.ID())) }
	switch name {
	case operators.Equals, operators.NotEquals:
		// The same list may be in a list many times: comparing it takes exponential time.
		if !slices.ContainsFunc(args, scalar) {
			return ErrNotScalar
		}
	case operators.In, "indexOf", "lastIndexOf":
		if !scalar(args[0]) {
			return errors.New("searches for a list, a map or dyn(…), or in a list by its index: search for a text, a number, a boolean or a time")
		}
	}
	return nil
}

// shortLiteral reports whether the third argument is a literal text of at most maxReplacement bytes.
func shortLiteral(args []ast.Expr) bool {
	if len(args) < 3 || args[2].Kind() != ast.LiteralKind {
		return false
	}
	text, ok := args[2].AsLiteral().(types.String)
	return ok && len(text) <= maxReplacement
}

func isScalar(t *types.Type) bool {
	switch t.Kind() {
	case types.BoolKind, types.BytesKind, types.DoubleKind, types.DurationKind, types.IntKind, types.NullTypeKind, types.StringKind,
		types.TimestampKind, types.UintKind:
		return true
	default:
		return false
	}
}
