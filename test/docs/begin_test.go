// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// standing is the environment variable that may name the folder of a fleet that the quick start was followed on before, for those
// who work at the documents. FLEET and BIN are to be as then.
const standing = "DOCS_FLEET"

// last is the command of the quick start that is left to the end of all tests, for it ends the fleet.
const last = "make fleet-down"

// begun reports that the way of a newcomer was begun, and arrived that it was gone to its end.
var begun, arrived bool

// TestQuickStart goes the way of a newcomer: the commands of README.md and of the quick start, in their order, in one shell. It
// ends with a rollout that is finished.
func TestQuickStart(t *testing.T) { quickStart(t) }

// quickStart follows the documents once, for all tests that need the fleet which they make.
func quickStart(t *testing.T) {
	t.Helper()
	if begun {
		if !arrived {
			t.Fatal("there is no fleet: the quick start could not be followed")
		}
		return
	}
	begun = true
	if os.Getenv(standing) != "" {
		typed(t, world.shell, `eval "$(make -s fleet-env)"`)
		arrived = arrive(t, os.Getenv(standing)) == nil
		return
	}
	commands := 0
	for _, name := range []string{"README.md", "docs/quick-start.md"} {
		p := one(t, name)
		for _, b := range p.blocks {
			if b.given == "" {
				commands += follow(t, p, b, nil)
			}
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	if commands < 15 {
		t.Fatalf("only %d commands were followed", commands)
	}
	if err := arrive(t, filepath.Join(world.dir, "fleet")); err != nil {
		t.Fatal(err)
	}
	arrived = true
}

// arrive makes of the fleet that the reader has started the one where all documents are followed.
func arrive(t *testing.T, folder string) error {
	t.Helper()
	if err := connect(folder); err != nil {
		return err
	}
	file := filepath.Join(world.dir, "environment")
	typed(t, world.shell, "env -0 > "+quoted(file))
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	world.environment = strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
	if err := joinLocal(t.Context()); err != nil {
		return err
	}
	typed(t, world.shell, "kubectl wait --for=condition=Ready clusters --all --timeout=1m")
	return nil
}

// refused is how an answer begins that shows that a command fails.
var refused = regexp.MustCompile(`(?m)^(Error from server|shipperctl:|error:|BROKEN|usage:)`)

// follow types the commands of a block that can be run here, and returns how many.
func follow(t *testing.T, p page, b block, s *env) int {
	t.Helper()
	real, where := func(text string) string { return text }, world.shell
	if s != nil {
		real, where = s.real, s.shell
	}
	n := 0
	for _, c := range b.commands() {
		if unproved(c) != nil {
			continue
		}
		n++
		if s != nil {
			s.before(c.text)
		}
		said, status, err := where.run(ending(b, real(c.text)), patience)
		if err != nil {
			t.Fatalf("%s:%d: $ %s\n%v\n%s", p.name, b.line, c.text, err, said)
		}
		if want := refused.MatchString(c.says); (status != 0) != want && !interrupted(c.text, status) {
			t.Errorf("%s:%d: $ %s\nended with %d\n%s", p.name, b.line, c.text, status, said)
			return n
		}
		if shown := real(c.says); b.shown && c.speaks && !says(said, shown) {
			t.Errorf("%s:%d: $ %s\nsaid\n%s\nand the document has\n%s", p.name, b.line, c.text, said, shown)
		}
	}
	return n
}

// watches are commands that go on until their reader has seen enough.
var watches = regexp.MustCompile(`^(shipperctl rollout status .*(-w|--watch)|kubectl .*(-w|--watch))\b`)

// ending is a command in a form that comes to an end: one that watches is interrupted, as by its reader, and a script ends where
// it fails.
func ending(b block, text string) string {
	if b.language == "sh" {
		return "(set -e\n" + text + ")"
	}
	if watches.MatchString(text) {
		return "timeout --signal=INT 3 " + text
	}
	return text
}

// interrupted reports whether a status is that of a command whose reader had seen enough.
func interrupted(text string, status int) bool { return watches.MatchString(text) && status == 124 }
