// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
)

// node is a part of a condition that can be translated.
type node struct {
	op   operation
	text string
	args []*node
}

// operation is the kind of a node. Operators and functions have their own names: "&&", "len".
type operation string

const (
	number  operation = "number"
	text    operation = "text"
	boolean operation = "boolean"
	null    operation = "null"
	// result is the value that is judged; element is that of a list in all() and the like.
	result  operation = "result"
	element operation = "element"
	// numberArg and textArg are arguments.
	numberArg operation = "number argument"
	textArg   operation = "text argument"
	field     operation = "field"
	index     operation = "index"
	list      operation = "list"
	choice    operation = "?:"
	and       operation = "&&"
	or        operation = "||"
	not       operation = "!"
	minus     operation = "minus"
	in        operation = "in"
	// failing and notANumber stand for values that are known before anything is measured.
	failing    operation = "failing"
	notANumber operation = "not a number"
)

// Operators of expr that are translated.
var (
	comparisons     = []operation{"==", "!=", "<", "<=", ">", ">=", in, "contains", "startsWith", "endsWith", "matches"}
	binaryOperators = append([]operation{and, or, "+", "-", "*", "/"}, comparisons...)
	words           = map[string]operation{"and": and, "or": or}
)

// functions are those that are translated, and how many arguments they take.
var functions = map[string]int{
	"len": 1, "asFloat": 1, "float": 1, "asInt": 1, "int": 1, "isNaN": 1, "isInf": 1, "isNil": 1, "default": 2,
	"all": 2, "any": 2, "none": 2, "one": 2,
}

// quantifiers are the functions whose second argument is a condition for each element of a list.
var quantifiers = []operation{"all", "any", "none", "one"}

// placeholder is an argument as Argo writes it, and standIn what expr parses in its place: a name or a part of a text.
var (
	placeholder = regexp.MustCompile(`\{\{\s*args\.([^\s{}]+)\s*\}\}`)
	standIn     = regexp.MustCompile(`argument_of_Argo_([0-9]+)_`)
)

// reader converts what expr has parsed.
type reader struct {
	operand   Operand
	arguments []string
	inside    bool // the condition of a quantifier
}

// parse parses a condition in the language expr.
func parse(condition string, operand Operand) (*node, error) {
	r := &reader{operand: operand}
	condition = placeholder.ReplaceAllStringFunc(condition, func(found string) string {
		r.arguments = append(r.arguments, placeholder.FindStringSubmatch(found)[1])
		return fmt.Sprintf("argument_of_Argo_%d_", len(r.arguments)-1)
	})
	if at := strings.Index(condition, "{{"); at >= 0 {
		return nil, fmt.Errorf("%s is no argument", shortened(condition[at:]))
	}
	tree, err := parser.Parse(condition)
	if wrong := (*file.Error)(nil); errors.As(err, &wrong) {
		return nil, errors.New(wrong.Message) // without the picture of where, which has several lines
	}
	if err != nil {
		return nil, err
	}
	return r.node(tree.Node)
}

func (r *reader) node(from ast.Node) (*node, error) {
	switch n := from.(type) {
	case *ast.IntegerNode:
		return &node{op: number, text: strconv.Itoa(n.Value)}, nil
	case *ast.FloatNode:
		return &node{op: number, text: strconv.FormatFloat(n.Value, 'g', -1, 64)}, nil
	case *ast.BoolNode:
		return constant(n.Value), nil
	case *ast.NilNode:
		return &node{op: null}, nil
	case *ast.StringNode:
		return r.textOf(n.Value)
	case *ast.IdentifierNode:
		return r.name(n.Value)
	case *ast.PointerNode:
		if n.Name == "" {
			return &node{op: element}, nil
		}
	case *ast.MemberNode:
		return r.member(n)
	case *ast.ArrayNode:
		return r.with(list, n.Nodes...)
	case *ast.UnaryNode:
		return r.unary(n)
	case *ast.BinaryNode:
		if op := cmp.Or(words[n.Operator], operation(n.Operator)); slices.Contains(binaryOperators, op) {
			return r.with(op, n.Left, n.Right)
		}
	case *ast.ConditionalNode:
		return r.with(choice, n.Cond, n.Exp1, n.Exp2)
	case *ast.BuiltinNode:
		return r.function(n.Name, n.Arguments)
	case *ast.PredicateNode:
		return r.node(n.Node)
	case *ast.CallNode:
		if callee, is := n.Callee.(*ast.IdentifierNode); is {
			return r.function(callee.Value, n.Arguments)
		}
	}
	return nil, fmt.Errorf("a Check cannot compute %s", shortened(from.String()))
}

// with is a node with these arguments.
func (r *reader) with(op operation, from ...ast.Node) (*node, error) {
	out := &node{op: op}
	for _, arg := range from {
		parsed, err := r.node(arg)
		if err != nil {
			return nil, err
		}
		out.args = append(out.args, parsed)
	}
	return out, nil
}

func (r *reader) unary(n *ast.UnaryNode) (*node, error) {
	switch n.Operator {
	case "+":
		return r.node(n.Node)
	case "-":
		out, err := r.with(minus, n.Node)
		if err == nil && out.args[0].op == number && out.args[0].text[0] != '-' {
			return &node{op: number, text: "-" + out.args[0].text}, nil
		}
		return out, err
	}
	return r.with(not, n.Node)
}

func (r *reader) member(n *ast.MemberNode) (*node, error) {
	out, err := r.with(index, n.Node)
	if err != nil {
		return nil, err
	}
	switch key := n.Property.(type) {
	case *ast.StringNode:
		out.op, out.text = field, key.Value
	case *ast.IntegerNode:
		out.text = strconv.Itoa(key.Value)
	default:
		return nil, fmt.Errorf("[%s] is no index", shortened(n.Property.String()))
	}
	return out, nil
}

// name converts a name: the result, or an argument that stands for a number, or for true or false.
func (r *reader) name(name string) (*node, error) {
	if name == "result" {
		return &node{op: result}, nil
	}
	found := standIn.FindStringSubmatch(name)
	if found == nil || found[0] != name {
		return nil, fmt.Errorf("%s is not known", name)
	}
	arg, known, value := r.argument(found[1])
	if value == "true" || value == "false" {
		return &node{op: "==", args: []*node{{op: textArg, text: known}, {op: text, text: "true"}}}, nil
	}
	if _, err := strconv.ParseFloat(value, 64); value != "" && err != nil {
		return nil, fmt.Errorf("the argument %s is %q, and only numbers, true and false can be arguments of conditions", arg, shortened(value))
	}
	return &node{op: numberArg, text: known}, nil
}

// argument returns the name of an argument, its name in a Check, and its usual value.
func (r *reader) argument(number string) (name, as, usually string) {
	if i, err := strconv.Atoi(number); err == nil && i < len(r.arguments) {
		name = r.arguments[i]
	}
	as, usually = r.operand.Argument(name)
	return name, as, usually
}

// textOf converts a text, which may contain arguments.
func (r *reader) textOf(content string) (*node, error) {
	var parts []*node
	last := 0
	for _, at := range standIn.FindAllStringSubmatchIndex(content, -1) {
		if at[0] > last {
			parts = append(parts, &node{op: text, text: content[last:at[0]]})
		}
		_, known, _ := r.argument(content[at[2]:at[3]])
		parts = append(parts, &node{op: textArg, text: known})
		last = at[1]
	}
	if last < len(content) || len(parts) == 0 {
		parts = append(parts, &node{op: text, text: content[last:]})
	}
	out := parts[0]
	for _, part := range parts[1:] {
		out = &node{op: "+", args: []*node{out, part}}
	}
	return out, nil
}

func (r *reader) function(name string, args []ast.Node) (*node, error) {
	arity, known := functions[name]
	switch quantifies := slices.Contains(quantifiers, operation(name)); {
	case !known:
		return nil, fmt.Errorf("%s is not known", name)
	case len(args) != arity:
		return nil, fmt.Errorf("%s has %d arguments", name, len(args))
	case quantifies && r.inside:
		return nil, errors.New("a list in a list is judged")
	case quantifies:
		r.inside = true
		defer func() { r.inside = false }()
	}
	return r.with(operation(name), args...)
}

// shortened is the beginning of a text, for messages.
func shortened(text string) string {
	if r := []rune(text); len(r) > 24 {
		return string(r[:23]) + "…"
	}
	return text
}
