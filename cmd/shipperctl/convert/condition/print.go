// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// kind is the type of a part in CEL.
type kind string

const (
	aNumber  kind = "a number"
	aText    kind = "a text"
	aBoolean kind = "true or false"
	aNull    kind = "nil"
	aList    kind = "a list"
	// anything is JSON.
	anything kind = "any value"
)

// Precedences of CEL: what binds stronger has a higher one.
const (
	ofChoice = iota + 1
	ofOr
	ofAnd
	ofComparison
	ofSum
	ofProduct
	ofUnary
	ofValue
)

var celPrecedences = map[operation]int{
	or: ofOr, and: ofAnd, "==": ofComparison, "!=": ofComparison, "<": ofComparison, "<=": ofComparison, ">": ofComparison, ">=": ofComparison,
	in: ofComparison, "+": ofSum, "-": ofSum, "*": ofProduct, "/": ofProduct,
}

// methods are operators of expr that are methods of a text in CEL.
var methods = []operation{"contains", "startsWith", "endsWith"}

// part is a printed part.
type part struct {
	text       string
	precedence int
	kind       kind
	// of is the kind of the elements of a list.
	of kind
}

// in parentheses if it binds weaker than this.
func (p part) at(precedence int) string {
	if p.precedence < precedence {
		return "(" + p.text + ")"
	}
	return p.text
}

// number is the part as a double: JSON may have whole numbers or texts.
func (p part) number() part {
	if p.kind == anything {
		return part{text: "double(" + p.text + ")", precedence: ofValue, kind: aNumber}
	}
	return p
}

// printBool prints a condition.
func printBool(n *node, operand Operand) (string, error) {
	out, err := (&printer{operand}).print(n)
	switch {
	case err != nil:
		return "", err
	case out.kind == anything:
		return out.at(ofComparison) + " == true", nil
	case out.kind != aBoolean:
		return "", fmt.Errorf("it is %s, and not true or false", out.kind)
	}
	return out.text, nil
}

func printed(n *node, operand Operand) (string, error) {
	out, err := (&printer{operand}).print(n)
	return out.text, err
}

type printer struct{ operand Operand }

func (p *printer) print(n *node) (part, error) {
	switch n.op {
	case number:
		return double(n.text)
	case text:
		return part{text: literal(n.text), precedence: ofValue, kind: aText}, nil
	case boolean:
		return part{text: n.text, precedence: ofValue, kind: aBoolean}, nil
	case null:
		return part{text: "null", precedence: ofValue, kind: aNull}, nil
	case numberArg:
		return part{text: "double(args." + n.text + ")", precedence: ofValue, kind: aNumber}, nil
	case textArg:
		return part{text: "args." + n.text, precedence: ofValue, kind: aText}, nil
	case result:
		if p.operand.Sample {
			return part{text: p.operand.CEL, precedence: ofValue, kind: aNumber}, nil
		}
		return part{text: p.operand.CEL, precedence: ofValue, kind: anything}, nil
	case element:
		return part{text: "x", precedence: ofValue, kind: anything}, nil
	case failing, notANumber:
		return part{}, errors.New("it always fails")
	}
	args := make([]part, len(n.args))
	for i, arg := range n.args {
		var err error
		if args[i], err = p.print(arg); err != nil {
			return part{}, err
		}
	}
	switch {
	case n.op == "matches":
		return part{}, errors.New("a Check has no regular expressions: use contains, startsWith or endsWith")
	case n.op == in && args[0].kind == anything:
		return p.among(n)
	case slices.Contains(methods, n.op):
		return method(n.op, args[0], args[1])
	case celPrecedences[n.op] > 0:
		return binary(n.op, args[0], args[1])
	}
	return other(n, args)
}

// among prints that a JSON value is in a list: as comparisons, since Checks search lists only for values of a type.
func (p *printer) among(n *node) (part, error) {
	if n.args[1].op != list {
		return part{}, fmt.Errorf("in searches for %s", anything)
	}
	out := constant(false)
	for i, item := range n.args[1].args {
		same := &node{op: "==", args: []*node{n.args[0], item}}
		if i > 0 {
			same = &node{op: or, args: []*node{out, same}}
		}
		out = same
	}
	return p.print(out)
}

// double prints a number so that CEL takes it for a double.
func double(text string) (part, error) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return part{}, fmt.Errorf("%s is no number", text)
	}
	out := strconv.FormatFloat(value, 'g', -1, 64)
	if !strings.ContainsAny(out, ".e") {
		out += ".0"
	}
	if value < 0 {
		return part{text: out, precedence: ofUnary, kind: aNumber}, nil
	}
	return part{text: out, precedence: ofValue, kind: aNumber}, nil
}

// literal prints a text.
func literal(text string) string { return strconv.Quote(text) }

// binary prints an operator of two.
func binary(op operation, a, b part) (part, error) {
	at, kind := celPrecedences[op], aBoolean
	switch at {
	case ofAnd, ofOr:
		for _, side := range []part{a, b} {
			if side.kind != aBoolean && side.kind != anything {
				return part{}, fmt.Errorf("a side of %s is %s", op, side.kind)
			}
		}
		return part{text: a.at(at) + " " + string(op) + " " + b.at(at), precedence: at, kind: aBoolean}, nil // both are associative
	case ofComparison:
		if err := canCompare(op, a, b); err != nil {
			return part{}, err
		}
	default:
		kind = aNumber
		if op == "+" && (a.kind == aText || b.kind == aText) {
			kind = aText
			break
		}
		a, b = a.number(), b.number()
	}
	if kind != aBoolean && (a.kind != kind && a.kind != anything || b.kind != kind && b.kind != anything) {
		return part{}, fmt.Errorf("%s is between %s and %s", op, a.kind, b.kind)
	}
	return part{text: a.at(at) + " " + string(op) + " " + b.at(at+1), precedence: at, kind: kind}, nil
}

// canCompare returns an error if CEL cannot compare two parts.
func canCompare(op operation, a, b part) error {
	ordered := op != "==" && op != "!="
	switch {
	case op == in && b.kind == aList && a.kind != b.of && a.kind != anything && b.of != anything:
		return fmt.Errorf("in compares %s with %s", a.kind, b.of)
	case op == in && b.kind != aList && b.kind != anything:
		return fmt.Errorf("in is followed by %s", b.kind)
	case op == in:
		return nil
	case ordered && (a.kind == aBoolean || b.kind == aBoolean || a.kind == aNull || b.kind == aNull),
		a.kind == aList || b.kind == aList,
		a.kind != b.kind && a.kind != anything && b.kind != anything:
		return fmt.Errorf("%s compares %s with %s", op, a.kind, b.kind)
	}
	return nil
}

// method prints an operator that is a method in CEL.
func method(op operation, a, b part) (part, error) {
	for _, side := range []part{a, b} {
		if side.kind != aText && side.kind != anything {
			return part{}, fmt.Errorf("a side of %s is %s", op, side.kind)
		}
	}
	return part{text: a.at(ofValue) + "." + string(op) + "(" + b.text + ")", precedence: ofValue, kind: aBoolean}, nil
}

// operands are the kinds, besides any value, that operators and functions take first.
var operands = map[operation][]kind{
	not: {aBoolean}, minus: {aNumber}, "isInf": {aNumber}, "asFloat": {aNumber, aText}, "float": {aNumber, aText}, "asInt": {aNumber, aText},
	"int": {aNumber, aText}, "len": {aText, aList}, field: {}, index: {}, "isNil": {}, "all": {}, "any": {}, "one": {}, "none": {},
}

// other prints what is no operator of two.
func other(n *node, args []part) (part, error) {
	of := part{}
	if len(args) > 0 {
		of = args[0]
	}
	if takes, is := operands[n.op]; is && of.kind != anything && !slices.Contains(takes, of.kind) {
		return part{}, fmt.Errorf("%s is of %s", n.op, of.kind)
	}
	switch n.op {
	case not:
		return part{text: "!" + of.at(ofUnary), precedence: ofUnary, kind: aBoolean}, nil
	case minus:
		return part{text: "-" + of.number().at(ofUnary), precedence: ofUnary, kind: aNumber}, nil
	case choice:
		return chosen(args[0], args[1], args[2])
	case list:
		return listed(args)
	case field:
		return part{text: of.at(ofValue) + Field(n.text), precedence: ofValue, kind: anything}, nil
	case index:
		return part{text: of.at(ofValue) + "[" + n.text + "]", precedence: ofValue, kind: anything}, nil
	case "len":
		return part{text: "double(size(" + of.text + "))", precedence: ofValue, kind: aNumber}, nil
	case "asFloat", "float":
		if of.kind == aNumber {
			return of, nil
		}
		return part{text: "double(" + of.text + ")", precedence: ofValue, kind: aNumber}, nil
	case "asInt", "int":
		return part{text: "double(int(" + of.text + "))", precedence: ofValue, kind: aNumber}, nil
	case "isInf":
		of = of.number()
		infinities := ` in [double("Infinity"), double("-Infinity")]`
		return part{text: of.at(ofSum) + infinities, precedence: ofComparison, kind: aBoolean}, nil
	case "isNil":
		return part{text: of.at(ofSum) + " == null", precedence: ofComparison, kind: aBoolean}, nil
	case "default":
		return chosen(part{text: of.at(ofSum) + " == null", precedence: ofComparison, kind: aBoolean}, args[1], of)
	case "all", "any", "one", "none":
		return quantified(n.op, of, args[1])
	}
	return part{}, fmt.Errorf("%s is not known", n.op)
}

func chosen(condition, first, second part) (part, error) {
	kind := first.kind
	switch {
	case condition.kind != aBoolean && condition.kind != anything:
		return part{}, fmt.Errorf("? follows %s", condition.kind)
	case first.kind == anything || second.kind == anything:
		kind = anything
	case first.kind != second.kind:
		return part{}, fmt.Errorf("? chooses between %s and %s", first.kind, second.kind)
	}
	return part{text: condition.at(ofOr) + " ? " + first.at(ofOr) + " : " + second.at(ofChoice), precedence: ofChoice, kind: kind}, nil
}

func listed(args []part) (part, error) {
	var texts []string
	of := anything
	for _, arg := range args {
		of = arg.kind
		if arg.kind != args[0].kind {
			return part{}, fmt.Errorf("a list has %s and %s", args[0].kind, arg.kind)
		}
		texts = append(texts, arg.text)
	}
	return part{text: "[" + strings.Join(texts, ", ") + "]", precedence: ofValue, kind: aList, of: of}, nil
}

func quantified(op operation, of, condition part) (part, error) {
	inner := condition.text
	switch condition.kind {
	case aBoolean:
	case anything:
		inner = condition.at(ofSum) + " == true"
	default:
		return part{}, fmt.Errorf("the condition of %s is %s", op, condition.kind)
	}
	macro, negation, precedence := "all", "", ofValue
	switch op {
	case "any":
		macro = "exists"
	case "one":
		macro = "exists_one"
	case "none":
		macro, negation, precedence = "exists", "!", ofUnary
	}
	return part{text: negation + of.at(ofValue) + "." + macro + "(x, " + inner + ")", precedence: precedence, kind: aBoolean}, nil
}

var names = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Field selects a field of a value in CEL.
func Field(name string) string {
	if !names.MatchString(name) || slices.Contains([]string{"in", "true", "false", "null"}, name) {
		return "[" + literal(name) + "]"
	}
	return "." + name
}
