// SPDX-License-Identifier: Apache-2.0

package duplicates

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
)

// pair is two elements of a list that have the same key.
type pair struct {
	// in is what has the list: a container, for its ports.
	in            map[string]any
	elements      []any
	first, second int
	renamed       renames
	// unexpanded is why references to a variable cannot be replaced, by its index.
	unexpanded map[int]string
	// hostnames are those of the aliases that get others, by index.
	hostnames map[int]map[string]bool
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

// allHostnames gives the first alias the hostnames of both.
func allHostnames(p pair) (text string, drop int, refused string) {
	first, second := p.maps()
	names, _ := first["hostnames"].([]any)
	more, _ := second["hostnames"].([]any)
	has := p.hostnames[p.first]
	if has == nil {
		has = make(map[string]bool, len(names))
		for _, name := range names {
			has[fmt.Sprint(name)] = true
		}
		p.hostnames[p.first] = has
	}
	for _, name := range more {
		if text := fmt.Sprint(name); !has[text] {
			has[text], names = true, append(names, name)
		}
	}
	first["hostnames"] = names
	return "the first gets the hostnames of both", p.second, ""
}

// maxPortName is the length of a port's name that the API server accepts at most.
const maxPortName = 15

// onePort makes one port of two. One of two names is lost: what the object itself refers to by it gets the other.
func onePort(p pair) (text string, drop int, refused string) {
	first, second := p.maps()
	onNode := func(port map[string]any) []any { return []any{port["hostPort"], port["hostIP"]} }
	if first["hostPort"] != nil && second["hostPort"] != nil && !equality.Semantic.DeepEqual(onNode(first), onNode(second)) {
		return "", 0, "they are for different ports of the node, of which server-side apply takes one: remove one"
	}
	name, _ := first["name"].(string)
	gone, _ := second["name"].(string)
	if len(name) > maxPortName { // probes and Services get it
		return "", 0, fmt.Sprintf("the name of the first has more than %d characters: give it a shorter one", maxPortName)
	}
	for field, value := range second {
		if first[field] == nil {
			first[field] = value
		}
	}
	if name == "" || gone == "" || name == gone {
		return "they become one port", p.second, ""
	}
	p.renamed[gone] = name
	renameInProbes(p.in, gone, name)
	return fmt.Sprintf("they become one port, %q: probes and Services that name %q get it, all else has to name %q", name, gone, name),
		p.second, ""
}
