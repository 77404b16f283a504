// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// root of the source, seen from here.
const root = "../.."

// page is a document, as far as it is proved here.
type page struct {
	name   string // its path from the root
	blocks []block
}

// block is a part between fences.
type block struct {
	line     int
	language string
	text     string
	// given is what the comment before the block says is so when it is followed.
	given string
	// shown reports that what commands say is shown; else it is another day's, or proved elsewhere.
	shown bool
	// alone reports that it changes what all others stand on, and is followed while no other is.
	alone bool
}

// command is one line that a reader types, and what it is shown to say.
type command struct {
	text, says string
	// speaks reports that something is shown.
	speaks bool
}

var (
	fence = regexp.MustCompile("^ *```(.*)$")
	given = regexp.MustCompile(`^<!-- given: (.*?)(; alone)?(; says something else)? -->$`)
	// screen is before a screen that cmd/shipperctl/rollout draws, and compares.
	screen = regexp.MustCompile(`^<!-- screen: .* -->$`)
)

// pages are all documents that tell readers what to type.
func pages(t *testing.T) []page {
	t.Helper()
	var names []string
	for _, pattern := range []string{"README.md", "docs/*.md", "examples/README.md", "examples/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	if len(names) < 20 {
		t.Fatalf("only %d documents were found", len(names))
	}
	out := make([]page, 0, len(names))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		name, err = filepath.Rel(root, name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, page{name: name, blocks: blocks(string(text))})
	}
	return out
}

// one is one of the pages.
func one(t *testing.T, name string) page {
	t.Helper()
	all := pages(t)
	i := slices.IndexFunc(all, func(p page) bool { return p.name == name })
	if i < 0 {
		t.Fatalf("there is no %s", name)
	}
	return all[i]
}

// blocks are the parts of a text between fences.
func blocks(text string) []block {
	var out []block
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		match := fence.FindStringSubmatch(lines[i])
		if match == nil {
			continue
		}
		b := block{line: i + 1, language: match[1], shown: true}
		for j := i - 1; j >= 0 && strings.HasPrefix(strings.TrimSpace(lines[j]), "<!--"); j-- {
			if said := given.FindStringSubmatch(strings.TrimSpace(lines[j])); said != nil {
				b.given, b.alone, b.shown = said[1], said[2] != "", b.shown && said[3] == ""
			}
			b.shown = b.shown && !screen.MatchString(strings.TrimSpace(lines[j]))
		}
		for i++; i < len(lines) && fence.FindStringSubmatch(lines[i]) == nil; i++ {
			b.text += lines[i] + "\n"
		}
		out = append(out, b)
	}
	return out
}

// commands are what a block has its reader type. A script is one command.
func (b block) commands() []command {
	switch b.language {
	case "sh":
		return []command{{text: b.text}}
	case "console":
	default:
		return nil
	}
	var out []command
	lines := strings.Split(strings.TrimRight(b.text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		text, typed := strings.CutPrefix(strings.TrimLeft(lines[i], " "), "$ ")
		if !typed {
			if len(out) > 0 {
				last := &out[len(out)-1]
				last.says, last.speaks = last.says+lines[i]+"\n", last.speaks || lines[i] != ""
			}
			continue
		}
		for unfinished(text) && i+1 < len(lines) {
			i++
			text += "\n" + lines[i]
		}
		out = append(out, command{text: text})
	}
	return out
}

// unfinished reports whether a command goes on in the next line.
func unfinished(text string) bool {
	return strings.HasSuffix(text, `\`) || strings.Count(strings.ReplaceAll(text, `\'`, ""), "'")%2 == 1
}

// comment is what a reader is told behind a command.
var comment = regexp.MustCompile(`\s+# .*$`)

// bare is the command without the comment behind it.
func (c command) bare() string { return comment.ReplaceAllString(strings.TrimSpace(c.text), "") }

// TestFences holds documents to few kinds of blocks, so that no command hides where it is not looked for.
func TestFences(t *testing.T) {
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			typed := regexp.MustCompile(`(?m)^ *\$ `).MatchString(b.text)
			switch b.language {
			case "console":
				if !typed || !strings.HasPrefix(strings.TrimLeft(b.text, " "), "$ ") {
					t.Errorf("%s:%d: does not begin with a command after `$ `", p.name, b.line)
				}
			case "sh", "yaml", "text", "json":
				if typed {
					t.Errorf("%s:%d: has commands and is %s: fence them as console", p.name, b.line, b.language)
				}
			default:
				t.Errorf("%s:%d: a block of %q; there are console (commands after `$ ` and what they say), sh (scripts), yaml, json and text "+
					"(pictures, words)", p.name, b.line, b.language)
			}
		}
	}
}

func TestCommandsOfABlock(t *testing.T) {
	const text = "words\n<!-- given: a fleet; alone; says something else -->\n```console\n" +
		"$ one \\\n  two\nsaid\n$ three 'a\nb'\n\n$ four # why\n```\n"
	got := blocks(text)
	want := []block{{
		line: 3, language: "console", given: "a fleet", alone: true,
		text: "$ one \\\n  two\nsaid\n$ three 'a\nb'\n\n$ four # why\n",
	}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(block{})); diff != "" {
		t.Fatalf("blocks (-want +got)\n%s", diff)
	}
	commands := []command{{"one \\\n  two", "said\n", true}, {"three 'a\nb'", "\n", false}, {"four # why", "", false}}
	if diff := cmp.Diff(commands, got[0].commands(), cmp.AllowUnexported(command{})); diff != "" {
		t.Errorf("commands (-want +got)\n%s", diff)
	}
	if bare := got[0].commands()[2].bare(); bare != "four" {
		t.Errorf("without its comment it is %q", bare)
	}
}
