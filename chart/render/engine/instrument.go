// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"reflect"
	"text/template"
	"text/template/parse"
)

// The functions that are inserted into templates. No template may name them.
const (
	reserved  = "_bounded"
	enterName = reserved + "Enter"
	leaveName = reserved + "Leave"
	stepName  = reserved + "Step"
	showName  = reserved + "Show"
	keepName  = reserved + "Keep"
)

// inserted are the functions by their names.
func (r *run) inserted() template.FuncMap {
	return template.FuncMap{
		enterName: r.enter, leaveName: r.leave, stepName: r.step, showName: r.show, keepName: r.keep,
	}
}

// show passes on a value to be printed, unless it cannot be printed within bounds. It takes and returns a reflect.Value, so
// that the printing methods of its address still work.
func (r *run) show(v reflect.Value) (reflect.Value, error) {
	return v, r.measured("printing", v)
}

// keep passes on the value of a variable, and pays for it.
func (r *run) keep(v reflect.Value) (reflect.Value, error) {
	return v, r.spend(weight(v))
}

// instrument inserts calls into every template of the set: at its start and end, at each iteration of a loop, and where a value
// is printed or stored. The trees in known have them already.
func (r *run) instrument(set *template.Template, known ...*template.Template) {
	done := make(map[*parse.Tree]bool, len(known))
	for _, t := range known {
		done[t.Tree] = true
	}
	for _, t := range set.Templates() {
		if t.Tree == nil || t.Root == nil || done[t.Tree] {
			continue
		}
		done[t.Tree] = true
		instrumentList(t.Root)
		nodes := append([]parse.Node{call(enterName, t.Root.Pos)}, t.Root.Nodes...)
		t.Root.Nodes = append(nodes, call(leaveName, t.Root.Pos))
	}
}

func instrumentList(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch node := node.(type) {
		case *parse.ActionNode:
			last := showName
			if len(node.Pipe.Decl) > 0 {
				last = keepName
			}
			node.Pipe.Cmds = append(node.Pipe.Cmds, command(last, node.Pipe.Pos))
		case *parse.IfNode:
			instrumentBranch(&node.BranchNode)
		case *parse.WithNode:
			instrumentBranch(&node.BranchNode)
		case *parse.RangeNode:
			instrumentBranch(&node.BranchNode)
			node.List.Nodes = append([]parse.Node{call(stepName, node.Pos)}, node.List.Nodes...)
		}
	}
}

func instrumentBranch(branch *parse.BranchNode) {
	branch.Pipe.Cmds = append(branch.Pipe.Cmds, command(keepName, branch.Pipe.Pos))
	instrumentList(branch.List)
	instrumentList(branch.ElseList)
}

// call is an action that calls one of the inserted functions, which print nothing.
func call(name string, at parse.Pos) parse.Node {
	return &parse.ActionNode{
		NodeType: parse.NodeAction, Pos: at,
		Pipe: &parse.PipeNode{NodeType: parse.NodePipe, Pos: at, Cmds: []*parse.CommandNode{command(name, at)}},
	}
}

func command(name string, at parse.Pos) *parse.CommandNode {
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: at, Args: []parse.Node{parse.NewIdentifier(name).SetPos(at)}}
}
