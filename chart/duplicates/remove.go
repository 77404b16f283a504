// SPDX-License-Identifier: Apache-2.0

package duplicates

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"shipper.dev/shipper/chart"
)

// Finding is a list in which two elements have one key.
type Finding struct {
	// Object is the index of the object.
	Object int
	// Text names the fields, and says what is done about them. It contains no values but keys.
	Text string
	// Refused is set if the objects cannot be installed.
	Refused bool
}

// Remove returns objects without duplicates, and what it found. Objects that have some are copied, and so are Services that name a port
// by a name that is lost; none is changed.
func Remove(objects []unstructured.Unstructured) (out []unstructured.Unstructured, found []Finding) {
	lost := map[int]renames{}
	for i := range objects {
		r := remover{renamed: renames{}}
		if !r.any(objects[i].Object, listsOf(&objects[i])) {
			continue
		}
		if out == nil {
			out = slices.Clone(objects)
		}
		out[i] = *objects[i].DeepCopy()
		r.remove(out[i].Object, "", listsOf(&out[i]))
		found = append(found, r.findings(i)...)
		if len(r.renamed) > 0 {
			lost[i] = r.renamed
		}
	}
	if out == nil {
		return objects, nil
	}
	return out, append(found, renameInServices(out, lost)...)
}

// remover removes the duplicates of one object.
type remover struct {
	found []Finding
	// more are the findings that are left out, and refused is set if one of found is refused.
	more    int
	refused bool
	renamed renames
	// growth is by how many bytes references have made the object larger.
	growth int
}

// maxFindings bounds those of an object, of which a few are shown.
const maxFindings = 16

// add adds a finding. The first that is refused is never left out.
func (r *remover) add(f Finding) {
	if len(r.found) >= maxFindings && (!f.Refused || r.refused) {
		r.more++
		return
	}
	r.found, r.refused = append(r.found, f), r.refused || f.Refused
}

// findings are those of an object.
func (r *remover) findings(object int) []Finding {
	if r.more > 0 {
		r.found = append(r.found, Finding{Text: fmt.Sprintf("%d more lists have elements of one key", r.more)})
	}
	for i := range r.found {
		r.found[i].Object = object
	}
	return r.found
}

// any reports whether lists have duplicates.
func (r *remover) any(in map[string]any, lists []list) bool {
	return slices.ContainsFunc(lists, func(l list) bool {
		elements := elementsAt(in, l.path)
		seen := make(map[string]bool, len(elements))
		for _, e := range elements {
			key, has := l.keyOf(e)
			if has && seen[key] {
				return true
			}
			seen[key] = true
			if m, is := e.(map[string]any); is && r.any(m, l.inner) {
				return true
			}
		}
		return false
	})
}

// remove removes duplicates of lists in an element at a path, which ends with a dot or is empty.
func (r *remover) remove(in map[string]any, path string, lists []list) {
	for _, l := range lists {
		elements, at := elementsAt(in, l.path), path+strings.Join(l.path, ".")
		for i, e := range elements {
			if m, is := e.(map[string]any); is {
				r.remove(m, fmt.Sprintf("%s[%d].", at, i), l.inner)
			}
		}
		if kept := r.unique(l, in, elements, at); len(kept) < len(elements) {
			// The path was read just now, and leads through maps.
			_ = unstructured.SetNestedField(in, kept, l.path...)
		}
	}
}

// unique returns the elements of a list without duplicates. in is what has the list, and at its path.
func (r *remover) unique(l list, in map[string]any, elements []any, at string) []any {
	gone, first := make([]bool, len(elements)), map[string]int{}
	unexpanded, hostnames := map[int]string(nil), map[int]map[string]bool{}
	if l.refer {
		unexpanded = r.expandVariables(elements)
	}
	for i, e := range elements {
		key, has := l.keyOf(e)
		before, twice := first[key]
		if !has || !twice {
			if has {
				first[key] = i
			}
			continue
		}
		p := pair{in: in, elements: elements, first: before, second: i, renamed: r.renamed, unexpanded: unexpanded, hostnames: hostnames}
		text, drop, refused := "the second is left out", i, ""
		switch {
		case equality.Semantic.DeepEqual(elements[before], e):
			if l.merge != nil { // of two equal variables, the second is what those behind the first refer to
				text, drop, refused = l.merge(p)
			}
		case l.merge == nil:
			refused = "Kubernetes accepts no two: remove one"
		default:
			text, drop, refused = l.merge(p)
		}
		if refused != "" {
			text, drop = refused, i
		}
		if gone[drop] = true; drop == before {
			first[key] = i
		}
		r.add(Finding{
			Text: fmt.Sprintf("%s[%d] and [%d] have the same %s; %s", at, before, i, l.named(key), text), Refused: refused != "",
		})
	}
	kept := make([]any, 0, len(elements))
	for i, e := range elements {
		if !gone[i] {
			kept = append(kept, e)
		}
	}
	return kept
}

// keyOf is the key of an element; has is false without one, which the API server refuses.
func (l list) keyOf(element any) (key string, has bool) {
	m, is := element.(map[string]any)
	if len(l.keys) == 0 {
		return fmt.Sprint(element), !is && !l.whole
	}
	if !is || m[l.keys[0]] == nil {
		return "", false
	}
	values := make([]string, len(l.keys))
	for i, name := range l.keys {
		values[i] = defaults[name]
		if value := m[name]; value != nil {
			values[i] = fmt.Sprint(value)
		}
	}
	return strings.Join(values, ", "), true
}

// named is the key of elements in words.
func (l list) named(key string) string {
	if len(l.keys) == 0 {
		return fmt.Sprintf("value %q", chart.Shorten(key))
	}
	return fmt.Sprintf("%s %q", strings.Join(l.keys, " and "), chart.Shorten(strings.TrimSuffix(key, ", ")))
}

// elementsAt are those of a list; none if there is no such list.
func elementsAt(in map[string]any, path []string) []any {
	value, _, err := unstructured.NestedFieldNoCopy(in, path...)
	if err != nil {
		return nil
	}
	elements, _ := value.([]any)
	return elements
}
