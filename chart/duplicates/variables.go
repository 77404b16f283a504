// SPDX-License-Identifier: Apache-2.0

package duplicates

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxGrowth bounds the bytes by which references to values make an object larger: values that refer to each other can double 28 times in
// 2 kB.
const maxGrowth = 4 << 10

// lastVariable keeps the second variable, which a container gets.
func lastVariable(p pair) (text string, drop int, refused string) {
	first, second := p.maps()
	if isOptional(second) && !isOptional(first) {
		return "", 0, "the second may be absent, and then the first counts: remove one"
	}
	if why := p.unexpanded[p.first]; why != "" {
		return "", 0, why
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

// expandVariables writes the value of each variable that a later one of its name replaces into those between the two that refer to it.
// It returns why that cannot be done, by the index of the variable referred to.
func (r *remover) expandVariables(elements []any) (unexpanded map[int]string) {
	unexpanded, last, before := map[int]string{}, map[string]int{}, map[string]int{}
	for i, e := range elements {
		variable, _ := e.(map[string]any)
		if name, is := variable["name"].(string); is {
			last[name] = i
		}
	}
	for i, e := range elements {
		variable, _ := e.(map[string]any)
		text, _ := variable["value"].(string)
		changed, found := expand(text, func(name string) (value string, found bool) {
			at, is := before[name]
			if !is || last[name] < i {
				return "", false
			}
			value, why := valueOf(elements[at])
			if r.growth += max(0, len(value)-len("$()")-len(name)); why == "" && r.growth > maxGrowth {
				why = fmt.Sprintf("refers to the first, and the object becomes larger by more than %d bytes", maxGrowth)
			}
			if why == "" {
				return value, true
			}
			unexpanded[at] = fmt.Sprintf("%v %s: give the two other names", variable["name"], why)
			return "", false
		})
		if found {
			variable["value"] = changed
		}
		if name, is := variable["name"].(string); is {
			before[name] = i
		}
	}
	return unexpanded
}

// valueOf is the value of a variable; why is set if only the cluster has it.
func valueOf(element any) (value, why string) {
	variable, _ := element.(map[string]any)
	value, plain := variable["value"].(string)
	if !plain && (variable["value"] != nil || variable["valueFrom"] != nil) {
		return "", "refers to the first, whose value is not in the manifest"
	}
	return value, ""
}

// expand puts values in place of $(name), as the kubelet does; $$(name) is no reference.
func expand(text string, valueOf func(name string) (value string, found bool)) (out string, found bool) {
	var b strings.Builder
	rest := text
	for {
		at := strings.IndexByte(rest, '$')
		if at < 0 || at+1 == len(rest) {
			break
		}
		length := at + 1
		switch rest[at+1] {
		case '$':
			length++
		case '(':
			name, _, closed := strings.Cut(rest[at+2:], ")")
			if !closed { // nothing behind it is a reference, either
				b.WriteString(rest)
				return b.String(), found
			}
			length = at + len("$()") + len(name)
			if value, known := valueOf(name); known {
				b.WriteString(rest[:at])
				b.WriteString(value)
				rest, found = rest[length:], true
				continue
			}
		}
		b.WriteString(rest[:length])
		rest = rest[length:]
	}
	b.WriteString(rest)
	return b.String(), found
}
