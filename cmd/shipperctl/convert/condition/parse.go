// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// node is a part of a condition.
type node struct {
	op   operation
	text string
	args []*node
}

// operation says what a node is. Operators and functions have their own names: "&&", "len".
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

// precedences of binary operators of expr.
var precedences = map[string]int{
	"or": 1, "||": 1, "and": 2, "&&": 2,
	"==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "in": 3, "not": 3, "contains": 3, "startsWith": 3, "endsWith": 3, "matches": 3,
	"+": 4, "-": 4, "*": 5, "/": 5,
}

const comparing = 3

// functions that are known, and how many arguments they have.
var functions = map[string]int{
	"len": 1, "asFloat": 1, "float": 1, "asInt": 1, "int": 1, "isNaN": 1, "isInf": 1, "isNil": 1, "default": 2,
	"all": 2, "any": 2, "none": 2, "one": 2,
}

// quantifiers are the functions whose second argument is a condition for each element of a list.
var quantifiers = []operation{"all", "any", "none", "one"}

type parser struct {
	tokens  []token
	subject Subject
	// inside reports that an element is known.
	inside bool
}

func (p *parser) next() token { return p.tokens[0] }

// takes consumes the next token if it is this operator.
func (p *parser) takes(operator string) bool {
	if t := p.next(); t.kind != isOperator || t.text != operator {
		return false
	}
	p.tokens = p.tokens[1:]
	return true
}

func (p *parser) expect(operator string) error {
	if !p.takes(operator) {
		return fmt.Errorf("%s is missing before %q", operator, p.next().text)
	}
	return nil
}

// choice parses a condition.
func (p *parser) choice() (*node, error) {
	condition, err := p.binary(1)
	if err != nil || !p.takes("?") {
		return condition, err
	}
	first, err := p.choice()
	if err != nil {
		return nil, err
	}
	if err := p.expect(":"); err != nil {
		return nil, err
	}
	second, err := p.choice()
	return &node{op: choice, args: []*node{condition, first, second}}, err
}

// binary parses operators of at least this precedence.
func (p *parser) binary(least int) (*node, error) {
	left, err := p.unary()
	for err == nil {
		operator := p.next()
		precedence := precedences[operator.text]
		if operator.kind != isOperator && operator.kind != isName || precedence < least {
			return left, nil
		}
		p.tokens = p.tokens[1:]
		negated := operator.text == "not"
		if negated { // not in, not contains
			operator, p.tokens = p.next(), p.tokens[1:]
			if precedences[operator.text] != comparing || operator.kind != isName || operator.text == "not" {
				return nil, fmt.Errorf("not is followed by %q", operator.text)
			}
		}
		var right *node
		right, err = p.binary(precedence + 1)
		left = &node{op: operation(operator.text), args: []*node{left, right}}
		switch left.op {
		case "or":
			left.op = or
		case "and":
			left.op = and
		}
		if negated {
			left = &node{op: not, args: []*node{left}}
		}
		if precedence == comparing && precedences[p.next().text] == comparing {
			return nil, fmt.Errorf("%s compares what was compared", p.next().text)
		}
	}
	return nil, err
}

func (p *parser) unary() (*node, error) {
	op := operation("")
	switch t := p.next(); {
	case t.kind == isOperator && t.text == "!", t.kind == isName && t.text == "not":
		op = not
	case t.kind == isOperator && t.text == "-":
		op = minus
	case t.kind == isOperator && t.text == "+":
		p.tokens = p.tokens[1:]
		return p.unary()
	default:
		return p.postfix()
	}
	p.tokens = p.tokens[1:]
	operand, err := p.unary()
	if err == nil && op == minus && operand.op == number && operand.text[0] != '-' {
		return &node{op: number, text: "-" + operand.text}, nil
	}
	return &node{op: op, args: []*node{operand}}, err
}

// postfix parses a value with its fields and indexes.
func (p *parser) postfix() (*node, error) {
	value, err := p.primary()
	for err == nil {
		switch {
		case p.takes("."):
			name := p.next()
			if name.kind != isName {
				return nil, fmt.Errorf("a field is missing before %q", name.text)
			}
			p.tokens = p.tokens[1:]
			value = &node{op: field, text: name.text, args: []*node{value}}
		case p.takes("["):
			key := p.next()
			if key.kind == isNumber && !wholeNumber.MatchString(key.text) || key.kind != isNumber && key.kind != isText {
				return nil, fmt.Errorf("[%s is no index", key.text)
			}
			p.tokens = p.tokens[1:]
			value = &node{op: index, text: key.text, args: []*node{value}}
			if key.kind == isText {
				value.op = field
			}
			err = p.expect("]")
		default:
			return value, nil
		}
	}
	return nil, err
}

var wholeNumber = regexp.MustCompile(`^[0-9]{1,9}$`)

func (p *parser) primary() (*node, error) {
	t := p.next()
	switch {
	case p.takes("("):
		inner, err := p.choice()
		if err != nil {
			return nil, err
		}
		return inner, p.expect(")")
	case p.takes("["):
		return p.list()
	case p.takes("#"):
		return p.element()
	case t.kind == isOperator && t.text == "." && p.inside: // .name is #.name
		return p.element()
	}
	p.tokens = p.tokens[min(1, len(p.tokens)-1):]
	switch t.kind {
	case isNumber:
		if _, err := strconv.ParseFloat(t.text, 64); err != nil {
			return nil, fmt.Errorf("%s is no number", t.text)
		}
		return &node{op: number, text: t.text}, nil
	case isText:
		return p.text(t.text)
	case isPlaceholder:
		return p.argument(t.text)
	case isName:
		return p.name(t.text)
	case isEnd:
		return nil, fmt.Errorf("it ends too early")
	}
	return nil, fmt.Errorf("%q is not expected", t.text)
}

func (p *parser) element() (*node, error) {
	if !p.inside {
		return nil, fmt.Errorf("# is outside of a list")
	}
	return &node{op: element}, nil
}

func (p *parser) list() (*node, error) {
	out := &node{op: list}
	for !p.takes("]") {
		if len(out.args) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
		item, err := p.choice()
		if err != nil {
			return nil, err
		}
		out.args = append(out.args, item)
	}
	return out, nil
}

// name parses a name: a constant, the result, or a function.
func (p *parser) name(name string) (*node, error) {
	switch name {
	case "true", "false":
		return &node{op: boolean, text: name}, nil
	case "nil":
		return &node{op: null}, nil
	case "result":
		return &node{op: result}, nil
	}
	arity, known := functions[name]
	if !known {
		return nil, fmt.Errorf("%s is not known", name)
	}
	out := &node{op: operation(name)}
	if err := p.expect("("); err != nil {
		return nil, err
	}
	for i := range arity {
		if i > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
		parse := p.choice
		if i == 1 && slices.Contains(quantifiers, out.op) {
			parse = p.predicate
		}
		arg, err := parse()
		if err != nil {
			return nil, err
		}
		out.args = append(out.args, arg)
	}
	return out, p.expect(")")
}

// predicate parses the condition of a quantifier, with or without braces.
func (p *parser) predicate() (*node, error) {
	if p.inside {
		return nil, fmt.Errorf("a list in a list is judged")
	}
	p.inside = true
	defer func() { p.inside = false }()
	braced := p.takes("{")
	inner, err := p.choice()
	if err == nil && braced {
		err = p.expect("}")
	}
	return inner, err
}

// argument parses an argument that stands for a number, or for true or false.
func (p *parser) argument(name string) (*node, error) {
	known, value := p.subject.Argument(name)
	arg := &node{op: textArg, text: known}
	if value == "true" || value == "false" {
		return &node{op: "==", args: []*node{arg, {op: text, text: "true"}}}, nil
	}
	if _, err := strconv.ParseFloat(value, 64); value != "" && err != nil {
		return nil, fmt.Errorf("the argument %s is %q, and only numbers, true and false can be arguments of conditions", name, shortened(value))
	}
	return &node{op: numberArg, text: known}, nil
}

var inTexts = regexp.MustCompile(`\{\{\s*args\.([^\s{}]+)\s*\}\}`)

// text parses a text, which may have arguments.
func (p *parser) text(content string) (*node, error) {
	var out *node
	add := func(part *node) {
		if out == nil {
			out = part
		} else {
			out = &node{op: "+", args: []*node{out, part}}
		}
	}
	last := 0
	for _, at := range inTexts.FindAllStringSubmatchIndex(content, -1) {
		if at[0] > last {
			add(&node{op: text, text: content[last:at[0]]})
		}
		known, _ := p.subject.Argument(content[at[2]:at[3]])
		add(&node{op: textArg, text: known})
		last = at[1]
	}
	if last < len(content) || out == nil {
		add(&node{op: text, text: content[last:]})
	}
	return out, nil
}
