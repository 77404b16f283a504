// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"slices"
	"sync/atomic"
	"testing"
)

// guardPage is tested on its own, on a fleet with the guard.
const guardPage = "docs/guard.md"

// TestCommands runs the commands of all documents but those of the quick start, which ran before. Each block starts from what
// the comment before it says; without one it continues the block before. Blocks run in parallel, each in its own shell and
// namespace.
func TestCommands(t *testing.T) {
	if !defines(t, "test/guard", "TestTheCommandsOfThePage") {
		t.Errorf("no test runs the commands of %s", guardPage)
	}
	quickStart(t)
	t.Parallel()
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

// sections groups the blocks of a page that run one after the other, each group from what is given.
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

// TestEveryBlockIsProved fails for blocks of commands that have no comment about what is given and are not listed elsewhere.
func TestEveryBlockIsProved(t *testing.T) {
	for _, p := range pages(t) {
		if p.name != guardPage {
			sections(t, p)
		}
	}
}
