// SPDX-License-Identifier: Apache-2.0

// Package condition translates conditions of Argo's metrics, which are in the language expr, to CEL, as Checks have them. A condition that
// it does not know is an error.
//
// A sample of Prometheus is a list in expr, which may be empty, and one number in a Check, which has noData for an empty answer and for
// NaN. So what a condition says of len() and isNaN() is computed here: Empty and NaN are what comes of it, and CEL is the rest.
package condition

import (
	"fmt"
	"strconv"
	"strings"
)

// Operand is what the name result stands for in a condition.
type Operand struct {
	// CEL is the expression for it.
	CEL string
	// Sample is true for a sample of Prometheus, and false for JSON.
	Sample bool
	// Argument returns the name that a Check has for an argument, and the value that it usually has; empty if that is not known.
	Argument func(name string) (as, usually string)
}

// Outcome is what comes of a condition.
type Outcome string

// The outcomes. It Fails where expr has an error; it Depends where arguments decide.
const (
	True    Outcome = "true"
	False   Outcome = "false"
	Fails   Outcome = "fails"
	Depends Outcome = "depends"
)

// Condition is one that can be translated.
type Condition struct {
	// CEL is the translation, which is bool.
	CEL string
	// Empty and NaN are what comes of an answer without samples, and of a sample that is no number. Only for samples.
	Empty, NaN Outcome
	// AsksEmpty and AsksNaN report that the condition says something of these.
	AsksEmpty, AsksNaN bool
	// Several reports that the condition is about several samples.
	Several bool

	root    *node
	operand Operand
}

// Parse translates a condition.
func Parse(condition string, operand Operand) (*Condition, error) {
	parsed, err := parse(condition, operand)
	if err != nil {
		return nil, err
	}
	out := &Condition{operand: operand}
	present := folder{operand: operand}
	out.root = present.fold(parsed)
	if present.err != nil {
		return nil, present.err
	}
	if out.root.op == boolean && parsed.op != boolean {
		return nil, fmt.Errorf("it is always %s for one value", out.root.text)
	}
	out.AsksEmpty, out.AsksNaN, out.Several = present.asksEmpty, present.asksNaN, present.several
	if operand.Sample {
		out.Empty = outcome((&folder{operand: operand, answer: empty}).fold(parsed))
		out.NaN = outcome((&folder{operand: operand, answer: noNumber}).fold(parsed))
	}
	out.CEL, err = printBool(out.root, operand)
	return out, err
}

func outcome(n *node) Outcome {
	switch n.op {
	case boolean:
		return Outcome(n.text)
	case failing, notANumber:
		return Fails
	}
	return Depends
}

// But is a condition with an exception: in expr, bad values are bad even if they are good, too. In a Check they have no verdict.
func But(good, bad *Condition) (string, error) {
	if exclusive(good.root, bad.root, good.operand) {
		return good.CEL, nil
	}
	return printBool(&node{op: and, args: []*node{good.root, {op: not, args: []*node{bad.root}}}}, good.operand)
}

// exclusive reports whether it is plain that no value has both: they compare the same with two numbers.
func exclusive(a, b *node, operand Operand) bool {
	if len(a.args) != 2 || len(b.args) != 2 || a.args[1].op != number || b.args[1].op != number {
		return false
	}
	left, err := printed(a.args[0], operand)
	right, wrong := printed(b.args[0], operand)
	if err != nil || wrong != nil || left != right {
		return false
	}
	if strings.HasPrefix(string(a.op), "<") {
		a, b = b, a
	}
	least, _ := strconv.ParseFloat(a.args[1].text, 64)
	most, _ := strconv.ParseFloat(b.args[1].text, 64)
	switch {
	case a.op == ">=" && b.op == "<=":
		return most < least
	case strings.HasPrefix(string(a.op), ">") && strings.HasPrefix(string(b.op), "<"):
		return most <= least
	}
	return a.op == "==" && b.op == "!=" && least == most || a.op == "!=" && b.op == "==" && least == most
}
