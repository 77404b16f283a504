// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"strings"
	"testing"
)

// varying is what differs from one day and one fleet to another, and the word that stands for it in both texts.
var varying = []struct {
	what *regexp.Regexp
	word string
}{
	{regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`), ""}, // what a terminal does not show
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d+ [A-Z][a-z]+ \d\d:\d\d [A-Z]+`), "TIME"},
	{regexp.MustCompile(`\b(\d+(ms|[smhdy]))+\b`), "AGE"},
	{regexp.MustCompile(`-[0-9a-f]{6,8}-\d+\b`), "-HASH"}, // of Releases
	{regexp.MustCompile(`[█▒░]+`), "BAR"},
	{regexp.MustCompile(`\bsha256[\s-]+[0-9a-f]{4,}`), "SHA"},
	{regexp.MustCompile(`\bv1\.\d\d\.\d+\b`), "VERSION"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "UID"},
}

// dots stand for any number of lines.
var dots = regexp.MustCompile(`\n *\.\.\.`)

// plain is a text with its varying parts named, in one line.
func plain(text string) string {
	for _, v := range varying {
		text = v.what.ReplaceAllString(text, v.word)
	}
	return strings.Join(strings.Fields(text), " ")
}

// says reports whether an output is what a document shows, whatever is where the document has dots: a line of three, or `…` in
// one. Lines may be broken elsewhere, and columns be of another width.
func says(output, shown string) bool {
	rest := plain(output)
	var parts []string
	for _, part := range dots.Split("\n"+shown, -1) {
		parts = append(parts, strings.Split(part, "…")...)
	}
	for i, part := range parts {
		part = plain(part)
		before, after, found := strings.Cut(rest, part)
		if !found || i == 0 && before != "" {
			return false
		}
		rest = after
	}
	return rest == "" || plain(parts[len(parts)-1]) == ""
}

func TestSays(t *testing.T) {
	for sentence, c := range map[string]struct {
		output, shown string
		want          bool
	}{
		"the same words":                {"a b\nc\n", "a b\nc\n", true},
		"broken elsewhere":              {"a b c", "a\nb    c\n", true},
		"another word":                  {"a b", "a c\n", false},
		"less than is said":             {"a b c", "a b\n", false},
		"more than is said":             {"a b", "a b c\n", false},
		"something before":              {"x a", "a\n", false},
		"dots at the end":               {"a b c", "a\n...\n", true},
		"dots at the beginning":         {"x a", "...\na\n", true},
		"dots between":                  {"a x y c", "a\n...\nc\n", true},
		"dots between, and another end": {"a x y d", "a\n...\nc\n", false},
		"dots in a line":                {"a x y c", "a … c\n", true},
		"other ages, times, names, versions": {
			"12s 2026-01-01T00:00:00Z web-0a1b2c3d-4 v1.37.1", "3h12m 2025-12-31T23:59:59Z web-6f19aa85-0 v1.30.4\n", true,
		},
		"another release than an Application": {"web-0a1b2c3d-4", "shop-6f19aa85-0\n", false},
		"another archive":                     {"sha256-0123456789abcdef-1 nginx", "sha256-5b2f…-1 nginx\n", true},
		"drawn anew":                          {"\x1b[H\x1b[Ja b", "a b\n", true},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := says(c.output, c.shown); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
