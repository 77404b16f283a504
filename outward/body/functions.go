// SPDX-License-Identifier: Apache-2.0

package body

import (
	"errors"
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// maxReplacement bounds the text that replace inserts, and thus how much longer its result is than its input.
const maxReplacement = 32

// functions are the functions that an expression may call: those whose time and result are bounded by the size of their arguments.
// The API server's environment also has functions that are not, for example format("%.999999999f") and lists.range(999999999).
var functions = []string{
	operators.Conditional, operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.NotStrictlyFalse,
	operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.In,
	operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate, operators.Index,
	"bool", "double", "duration", "dyn", "int", "string", "timestamp", "uint", "size",
	"charAt", "contains", "endsWith", "indexOf", "lastIndexOf", "lowerAscii", "replace", "split", "startsWith", "substring", "trim",
	"upperAscii",
	"getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours", "getMilliseconds", "getMinutes", "getMonth",
	"getSeconds",
}

// regular are the functions with regular expressions: compiling one takes up to 100 MB, and the cost of a match does not show that.
var regular = []string{"matches", "find", "findAll"}

// permit returns an error if an expression has a construct whose cost is not bounded. The type checker may change the names of
// functions, and compiles regular expressions: permit is called before and after it.
func permit(tree *cel.Ast) error {
	var errs []error
	native := tree.NativeRep()
	ast.PostOrderVisit(native.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.StructKind:
			errs = append(errs, errors.New("objects with a type are not available here: use a map"))
		case ast.CallKind:
			if err := permitCall(native, e.AsCall()); err != nil {
				errs = append(errs, err)
			}
		}
	}))
	if len(errs) == 0 {
		return nil
	}
	return errs[0]
}

func permitCall(tree *ast.AST, call ast.CallExpr) error {
	name, args := call.FunctionName(), call.Args()
	if call.IsMemberFunction() {
		args = append([]ast.Expr{call.Target()}, args...)
	}
	switch {
	case slices.Contains(regular, name):
		return fmt.Errorf("calls %s: regular expressions are not available here: use startsWith, endsWith, contains, split or replace", name)
	case !slices.Contains(functions, name):
		return fmt.Errorf("calls %s, which is not available here: docs/notifications.md lists the functions", name)
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
			return errors.New("compares lists, maps or dyn(…): compare texts, numbers, booleans or times")
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

// costs charges calls for the bytes of their arguments and their result. The API server's estimate takes 1 for dyn(a) + dyn(b).
type costs struct{}

// CallCost is over the budget if the result is larger than a message may be.
func (costs) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	total := 1 + size(result)/bytesPerCost
	for _, arg := range args {
		total += size(arg) / bytesPerCost
	}
	switch {
	case len(args) < 2:
	case function == "contains", function == "indexOf", function == "lastIndexOf":
		total += size(args[0]) * size(args[1]) / (bytesPerCost * bytesPerCost)
	case function == operators.In:
		total += elements(args[1])
	case function == "split":
		total += elements(result)
	}
	if size(result) > maxBytes || elements(result) > maxValues {
		total = budget + 1
	}
	return &total
}

// size is the number of bytes of a text.
func size(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v))
	case types.Bytes:
		return uint64(len(v))
	default:
		return 0
	}
}

// elements is the number of elements of a list.
func elements(v ref.Val) uint64 {
	if list, ok := v.(traits.Lister); ok {
		if n, ok := list.Size().(types.Int); ok && n > 0 {
			return uint64(n)
		}
	}
	return 0
}
