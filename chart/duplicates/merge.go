// SPDX-License-Identifier: Apache-2.0

package duplicates

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// pair is two elements of a list that have the same key.
type pair struct {
	// in is what has the list: a container, for its ports.
	in            map[string]any
	elements      []any
	first, second int
	renamed       renames
}

// merge makes one of two elements: it returns which of them goes, and says what was done, or why there can be no one.
type merge func(pair) (text string, drop int, refused string)

// maps are the two elements.
func (p pair) maps() (first, second map[string]any) {
	first, _ = p.elements[p.first].(map[string]any)
	second, _ = p.elements[p.second].(map[string]any)
	return first, second
}

// last keeps the second element.
func last(p pair) (text string, drop int, refused string) {
	return "the first is left out", p.first, ""
}

// lastVariable keeps the second variable, which a container gets. Those between the two that refer to the first get its value.
func lastVariable(p pair) (text string, drop int, refused string) {
	first, second := p.maps()
	name, _ := first["name"].(string)
	value, plain := first["value"].(string)
	plain = plain || first["value"] == nil && first["valueFrom"] == nil
	if isOptional(second) && !isOptional(first) {
		return "", 0, "the second may be absent, and then the first counts: remove one"
	}
	for _, element := range p.elements[p.first+1 : p.second+1] {
		between, _ := element.(map[string]any)
		text, _ := between["value"].(string)
		changed, found := expand(text, name, value)
		if !found {
			continue
		}
		if !plain {
			return "", 0, fmt.Sprintf("%v refers to the first, whose value is not in the manifest: give the two other names", between["name"])
		}
		between["value"] = changed
	}
	return "the first is left out: a container gets the value of the last", p.first, ""
}

// isOptional reports whether a variable is absent if what it is read from is absent.
func isOptional(variable map[string]any) bool {
	for _, of := range []string{"configMapKeyRef", "secretKeyRef", "fileKeyRef"} {
		if optional, _, _ := unstructured.NestedBool(variable, "valueFrom", of, "optional"); optional {
			return true
		}
	}
	return false
}

// expand puts a value in place of $(name), as the kubelet does; $$(name) is no reference.
func expand(text, name, value string) (out string, found bool) {
	reference := "$(" + name + ")"
	var b strings.Builder
	for len(text) > 0 {
		switch {
		case strings.HasPrefix(text, "$$"):
			b.WriteString(text[:2])
			text = text[2:]
		case strings.HasPrefix(text, reference):
			b.WriteString(value)
			text, found = text[len(reference):], true
		default:
			b.WriteByte(text[0])
			text = text[1:]
		}
	}
	return b.String(), found
}

// allHostnames gives the first alias the hostnames of both.
func allHostnames(p pair) (text string, drop int, refused string) {
	first, second := p.maps()
	names, _ := first["hostnames"].([]any)
	more, _ := second["hostnames"].([]any)
	names = slices.Clone(names)
	for _, name := range more {
		if !slices.ContainsFunc(names, func(one any) bool { return equality.Semantic.DeepEqual(one, name) }) {
			names = append(names, name)
		}
	}
	first["hostnames"] = names
	return "the first gets the hostnames of both", p.second, ""
}

// onePort makes one port of two. One of two names is lost: what the object itself refers to by it gets the other.
func onePort(p pair) (text string, drop int, refused string) {
	first, second := p.maps()
	onNode := func(port map[string]any) []any { return []any{port["hostPort"], port["hostIP"]} }
	if first["hostPort"] != nil && second["hostPort"] != nil && !equality.Semantic.DeepEqual(onNode(first), onNode(second)) {
		return "", 0, "they are for different ports of the node, of which server-side apply takes one: remove one"
	}
	name, _ := first["name"].(string)
	gone, _ := second["name"].(string)
	for field, value := range second {
		if first[field] == nil {
			first[field] = value
		}
	}
	if name == "" || gone == "" || name == gone {
		return "they become one port", p.second, ""
	}
	for from, to := range p.renamed { // a third name of the port
		if to == gone {
			p.renamed[from] = name
		}
	}
	p.renamed[gone] = name
	renameInProbes(p.in, gone, name)
	return fmt.Sprintf("they become one port, %q: probes and Services that name %q get it, all else has to name %q", name, gone, name),
		p.second, ""
}
