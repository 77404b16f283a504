// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"fmt"
	"slices"
	"strconv"
)

// answer says which answer of Prometheus a condition is computed for.
type answer int

const (
	oneNumber answer = iota
	empty
	noNumber
)

// folder computes what is known of a condition before anything is measured, and keeps the rest.
type folder struct {
	operand             Operand
	answer              answer
	asksEmpty, asksNaN  bool
	several, inSequence bool
	err                 error
}

func constant(is bool) *node { return &node{op: boolean, text: strconv.FormatBool(is)} }

// known returns true if a part is this constant.
func (n *node) known(is bool) bool { return n.op == boolean && n.text == strconv.FormatBool(is) }

func (f *folder) refuse(format string, args ...any) *node {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
	return &node{op: failing}
}

func (f *folder) fold(n *node) *node {
	switch n.op {
	case result:
		return f.value(n)
	case element:
		if f.inSequence {
			return f.sample()
		}
		return n
	case and, or:
		return f.junction(n)
	case not:
		inner := f.fold(n.args[0])
		if inner.op == boolean {
			return constant(inner.known(false))
		}
		return f.with(n, inner)
	case choice:
		return f.choice(n)
	case index:
		if f.operand.Sample {
			return f.indexed(n)
		}
	case field:
		if f.operand.Sample {
			return f.refuse("a sample of Prometheus has no field %s", n.text)
		}
	case "len", "isNaN", "isInf", "isNil", "default", "asFloat", "float", "asInt", "int":
		return f.function(n)
	}
	if slices.Contains(quantifiers, n.op) {
		return f.quantified(n)
	}
	var args []*node
	for _, arg := range n.args {
		args = append(args, f.fold(arg))
	}
	return f.with(n, args...)
}

// with is a node with other arguments, or what is known of it.
func (f *folder) with(n *node, args ...*node) *node {
	for _, is := range []operation{failing, notANumber} {
		if slices.ContainsFunc(args, func(arg *node) bool { return arg.op == is }) {
			if is == notANumber && slices.Contains(comparisons, n.op) {
				return constant(n.op == "!=")
			}
			return &node{op: is}
		}
	}
	if len(args) == 2 && args[0].op == number && args[1].op == number && slices.Contains(comparisons, n.op) {
		a, _ := strconv.ParseFloat(args[0].text, 64)
		b, _ := strconv.ParseFloat(args[1].text, 64)
		switch n.op {
		case "==":
			return constant(a == b)
		case "!=":
			return constant(a != b)
		case "<":
			return constant(a < b)
		case "<=":
			return constant(a <= b)
		case ">":
			return constant(a > b)
		case ">=":
			return constant(a >= b)
		}
	}
	return &node{op: n.op, text: n.text, args: args}
}

// sample is the one value that Prometheus gave.
func (f *folder) sample() *node {
	if f.answer == noNumber {
		return &node{op: notANumber}
	}
	return &node{op: result}
}

// value is the result without an index: JSON, or the number of a scalar query, which is NaN where a vector is empty.
func (f *folder) value(n *node) *node {
	if f.operand.Sample && f.answer == empty {
		return &node{op: notANumber}
	}
	if f.operand.Sample {
		return f.sample()
	}
	return n
}

// indexed is a sample of a list.
func (f *folder) indexed(n *node) *node {
	switch {
	case n.args[0].op != result:
		return f.refuse("a sample of Prometheus is no list")
	case n.text != "0":
		return f.refuse("result[%s] is the value of another series: a query gives one", n.text)
	case f.answer == empty:
		return &node{op: failing}
	}
	return f.sample()
}

// junction is && or ||, whose second part is not computed where the first one decides.
func (f *folder) junction(n *node) *node {
	decides := n.op == or
	left := f.fold(n.args[0])
	if left.known(decides) || left.op == failing {
		return left
	}
	right := f.fold(n.args[1])
	switch {
	case left.known(!decides):
		return right
	case right.known(!decides):
		return left
	case right.known(decides):
		return right
	}
	return &node{op: n.op, args: []*node{left, right}}
}

func (f *folder) choice(n *node) *node {
	condition := f.fold(n.args[0])
	switch {
	case condition.op == failing:
		return condition
	case condition.op == boolean && condition.known(true):
		return f.fold(n.args[1])
	case condition.op == boolean:
		return f.fold(n.args[2])
	}
	return f.with(n, condition, f.fold(n.args[1]), f.fold(n.args[2]))
}

func (f *folder) function(n *node) *node {
	sampled := f.operand.Sample
	switch n.op {
	case "len":
		if !sampled {
			break
		}
		f.asksEmpty = true
		if n.args[0].op != result {
			return f.refuse("len is of something else than result")
		}
		if f.answer == empty {
			return &node{op: number, text: "0"}
		}
		return &node{op: number, text: "1"}
	case "isNaN":
		f.asksNaN = true
		switch inner := f.fold(n.args[0]); inner.op {
		case failing:
			return inner
		case notANumber:
			return constant(true)
		}
		return constant(false) // JSON has no NaN
	case "isInf":
		switch inner := f.fold(n.args[0]); inner.op {
		case failing:
			return inner
		case notANumber:
			return constant(false)
		}
	case "isNil", "default":
		if n.args[0].op != result {
			return f.refuse("%s is of something else than result", n.op)
		}
		if sampled && n.op == "isNil" { // Prometheus gives a list, or a number
			return constant(false)
		}
		if sampled {
			return f.fold(n.args[0])
		}
	}
	var args []*node
	for _, arg := range n.args {
		args = append(args, f.fold(arg))
	}
	return f.with(n, args...)
}

// quantified is all(list, condition) and the like. Of samples of Prometheus there is one.
func (f *folder) quantified(n *node) *node {
	if !f.operand.Sample {
		return f.with(n, f.fold(n.args[0]), f.fold(n.args[1]))
	}
	f.several, f.asksEmpty = true, true
	if n.args[0].op != result {
		return f.refuse("%s is of something else than result", n.op)
	}
	if f.answer == empty {
		return constant(n.op == "all" || n.op == "none")
	}
	f.inSequence = true
	inner := f.fold(n.args[1])
	f.inSequence = false
	if n.op != "none" {
		return inner
	}
	if inner.op == boolean {
		return constant(inner.known(false))
	}
	return f.with(&node{op: not}, inner)
}
