// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"slices"
	"sync/atomic"
	"testing"
)

// guardPage is followed by a test of its own, on a fleet that is guarded.
const guardPage = "docs/guard.md"

// TestCommands follows every command of every document but those of the way of a newcomer, which come before. Each block is
// followed where the comment before it says; one without goes on where the block before it has led. Many are followed at the same
// time, each in a shell and a namespace of its own.
func TestCommands(t *testing.T) {
	if !defines(t, "test/guard", "TestTheCommandsOfThePage") {
		t.Errorf("nobody follows %s", guardPage)
	}
	quickStart(t)
	var commands atomic.Int32
	t.Cleanup(func() {
		if n := commands.Load(); n < 60 {
			t.Errorf("only %d commands were followed", n)
		}
	})
	for _, p := range pages(t) {
		if p.name == guardPage {
			continue
		}
		for _, group := range sections(t, p) {
			t.Run(p.name+"/"+group[0].given, func(t *testing.T) {
				t.Parallel()
				s := newEnv(t, p)
				givens[group[0].given](s)
				if slices.ContainsFunc(group, func(b block) bool { return b.alone }) {
					s.alone()
				}
				for _, b := range group {
					commands.Add(int32(follow(t, p, b, s)))
				}
			})
		}
	}
}

// sections are the blocks of a page that are followed one after the other, each of them from what is given.
func sections(t *testing.T, p page) [][]block {
	t.Helper()
	var out [][]block
	newcomer := p.name == "README.md" || p.name == "docs/quick-start.md"
	for _, b := range p.blocks {
		proved := true
		for _, c := range b.commands() {
			proved = proved && unproved(c) != nil
		}
		switch {
		case proved, b.given == "" && newcomer:
		case b.given != "" && givens[b.given] != nil:
			out = append(out, []block{b})
		case b.given == "" && len(out) > 0:
			out[len(out)-1] = append(out[len(out)-1], b)
		default:
			t.Errorf("%s:%d: say what is given (<!-- given: … -->), or list its commands with what shows them instead", p.name, b.line)
		}
	}
	return out
}

// TestEveryBlockIsProved finds blocks of commands of which nobody says where they are of use.
func TestEveryBlockIsProved(t *testing.T) {
	for _, p := range pages(t) {
		if p.name != guardPage {
			sections(t, p)
		}
	}
}
