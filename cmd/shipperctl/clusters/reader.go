// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reader reads YAML strictly and collects what is wrong, each with its line.
type reader struct {
	file     string
	problems []error
}

// fields says how to read each key of a mapping.
type fields map[string]func(*yaml.Node)

// wrong notes a problem at a place.
func (r *reader) wrong(n *yaml.Node, format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("%s:%d: %s", r.file, n.Line, fmt.Sprintf(format, args...)))
}

// mapping reads a mapping that may have the known keys only. A key without a value counts as absent.
func (r *reader) mapping(n *yaml.Node, what string, known fields) {
	n = follow(n)
	if n.Kind != yaml.MappingNode {
		r.wrong(n, "%s must be a mapping of keys to values", what)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], follow(n.Content[i+1])
		read, ok := known[key.Value]
		switch {
		case !ok:
			r.wrong(key, "%s has no field %q%s", what, key.Value, meant(key.Value, known))
		case seen[key.Value]:
			r.wrong(key, "%q is given twice", key.Value)
		case value.Tag != "!!null":
			read(value)
		}
		seen[key.Value] = true
	}
}

// each reads a list.
func (r *reader) each(n *yaml.Node, key string, read func(*yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		r.wrong(n, "%s must be a list: start each entry with `- `", key)
		return
	}
	for _, e := range n.Content {
		read(follow(e))
	}
}

// text returns what reads a text. Numbers and the like are taken as they are written.
func (r *reader) text(into *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode {
			r.wrong(n, "a text is expected here")
			return
		}
		*into = n.Value
	}
}

// texts returns what reads a list of texts.
func (r *reader) texts(key string, into *[]string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		*into = []string{}
		r.each(n, key, func(n *yaml.Node) {
			var s string
			r.text(&s)(n)
			if slices.Contains(*into, s) {
				r.wrong(n, "%q is listed twice", s)
			}
			*into = append(*into, s)
		})
	}
}

// boolean returns what reads true or false.
func (r *reader) boolean(into *bool) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Tag != "!!bool" || n.Decode(into) != nil {
			r.wrong(n, "true or false is expected here, not %q", n.Value)
		}
	}
}

// number returns what reads a whole number of 32 bits.
func (r *reader) number(into **int32) func(*yaml.Node) {
	return func(n *yaml.Node) {
		value := new(int32)
		if n.Tag != "!!int" || n.Decode(value) != nil {
			r.wrong(n, "a whole number is expected here, not %q", n.Value)
			return
		}
		*into = value
	}
}

// follow returns what an alias stands for.
func follow(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// meant says which field an unknown key may stand for, or which there are.
func meant(key string, known fields) string {
	switch key {
	case "unschedulable", "weight", "identity":
		if _, ok := known["scheduler"]; ok {
			return "; it belongs under `scheduler`"
		}
	}
	names := slices.Sorted(maps.Keys(known))
	for _, name := range names {
		if distance(strings.ToLower(key), strings.ToLower(name)) <= 2 {
			return fmt.Sprintf("; is %q meant?", name)
		}
	}
	return "; there are: " + strings.Join(names, ", ")
}

// distance is the number of letters to insert, delete or replace to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := diagonal
			if a[i] != b[j] {
				next = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
