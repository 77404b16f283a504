// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	sigsyaml "sigs.k8s.io/yaml"

	"shipper.dev/shipper/chart"
)

// input is a text with YAML documents. file is its name in messages; empty for a text inside an object.
type input struct {
	file string
	text []byte
}

// document is one object of the input.
type document struct {
	// file is that of the input, and number counts its documents from 1. Empty documents are not counted; items of a List have the number of
	// the List.
	file   string
	number int
	// text is that of the YAML document, and line where it begins in the input, from 1.
	text []byte
	line int
	// first is the line of the object: the first line that has neither a comment nor spaces only.
	first int
	// broken is why the document cannot be read. The object is empty then.
	broken error
	unstructured.Unstructured
}

// title names the object in messages.
func (d document) title() string { return d.GetKind() + " " + d.GetName() }

// at is where the object is in the input: FILE:LINE, or the number of the document in a text without a name.
func (d document) at() string {
	if d.file == "" {
		return fmt.Sprintf("document %d", d.number)
	}
	return d.file + ":" + strconv.Itoa(d.first)
}

// failed is an error about a field of the document.
func (d document) failed(field, format string, args ...any) error {
	return fmt.Errorf("%s: %s %w", d.at(), field, fmt.Errorf(format, args...))
}

// is reports whether the object is of a kind.
func (d document) is(apiVersion, kind string) bool {
	return d.GetAPIVersion() == apiVersion && d.GetKind() == kind
}

// besides reports whether the object can be in the namespace of another one. A manifest may leave the namespace out.
func (d document) besides(other document) bool {
	return d.GetNamespace() == other.GetNamespace() || d.GetNamespace() == "" || other.GetNamespace() == ""
}

// read parses the YAML documents of a text without a name. It stops at the first that cannot be read.
func read(raw []byte) ([]document, error) {
	all := readAll([]input{{text: raw}})
	for _, d := range all {
		if d.broken != nil {
			return nil, d.broken
		}
	}
	return all, nil
}

// readAll parses YAML documents, and takes Lists apart.
func readAll(inputs []input) []document {
	var all []document
	for _, from := range inputs {
		number := 1
		for _, part := range split(from.text) {
			d := document{file: from.file, number: number, text: part.text, line: part.line, first: part.line + leading(part.text)}
			object, err := parse(part.text)
			switch {
			case err != nil:
				d.broken = d.unreadable(err)
			case object == nil:
				continue
			}
			d.Object = object
			all = append(all, flatten(d)...)
			number++
		}
	}
	return all
}

// part is the text of a YAML document, and the line where it begins, from 1.
type part struct {
	text []byte
	line int
}

// split cuts a text at the lines that separate YAML documents. A line with a separator and content begins a document.
func split(raw []byte) []part {
	var out []part
	start, begins := 0, 1
	end := func(at int) {
		if len(bytes.TrimSpace(raw[start:at])) > 0 {
			out = append(out, part{raw[start:at], begins})
		}
	}
	at, line := 0, 0
	for text := range bytes.Lines(raw) {
		line++
		rest, separates := bytes.CutPrefix(text, []byte("---"))
		trimmed := bytes.TrimSpace(rest)
		switch {
		case separates && (len(trimmed) == 0 || rest[0] == ' ' || rest[0] == '\t'):
			end(at)
			start, begins = at, line
			if len(trimmed) == 0 || trimmed[0] == '#' {
				start, begins = at+len(text), line+1
			}
		case string(bytes.TrimRight(text, " \t\r\n")) == "...":
			end(at)
			start, begins = at+len(text), line+1
		}
		at += len(text)
	}
	end(len(raw))
	return out
}

// leading counts the lines of a text before the first that has neither a comment nor spaces only.
func leading(text []byte) (count int) {
	for line := range bytes.Lines(text) {
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 && trimmed[0] != '#' {
			return count
		}
		count++
	}
	return 0
}

// parse decodes one document; nil if it is empty. Duplicate keys are errors.
func parse(text []byte) (map[string]any, error) {
	asJSON, err := sigsyaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, errors.New(strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")), " "))
	}
	var value any
	if err := json.Unmarshal(asJSON, &value); err != nil {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	switch value := value.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return value, nil
	}
	return nil, errors.New("it is not an object with apiVersion and kind")
}

// lineOfYAML is how the parser of YAML names a line of the document.
var lineOfYAML = regexp.MustCompile(`\bline (\d+): `)

// unreadable is an error of the parser, with the first line that it names as a line of the file.
func (d document) unreadable(err error) error {
	if d.file == "" {
		return fmt.Errorf("%s: %w", d.at(), err)
	}
	message := lineOfYAML.ReplaceAllStringFunc(err.Error(), func(found string) string {
		n, _ := strconv.Atoi(lineOfYAML.FindStringSubmatch(found)[1])
		return "line " + strconv.Itoa(d.line+n-1) + ": "
	})
	at := lineOfYAML.FindStringSubmatchIndex(message)
	if at == nil {
		return fmt.Errorf("%s: %s", d.at(), message)
	}
	return fmt.Errorf("%s:%s: it is no YAML: %s", d.file, message[at[2]:at[3]], message[at[1]:])
}

// flatten returns the items of a List, or else the document itself.
func flatten(d document) []document {
	if d.broken != nil || d.ofKeptn() {
		return []document{d}
	}
	for _, field := range []string{"apiVersion", "kind"} {
		if value, _, err := unstructured.NestedString(d.Object, field); err != nil || value == "" {
			d.broken = d.failed(field, "is missing")
			return []document{d}
		}
	}
	if !strings.HasSuffix(d.GetKind(), "List") {
		return []document{d}
	}
	if chart.IsEmptyList(&d.Unstructured) {
		return nil
	}
	items, found, err := unstructured.NestedSlice(d.Object, "items")
	if err != nil || !found {
		return []document{d} // a kind may end with List and have no items
	}
	var all []document
	lines := linesOfItems(d.text)
	for i, item := range items {
		if item == nil {
			continue
		}
		one := document{file: d.file, number: d.number, line: d.line, first: d.first}
		if i < len(lines) {
			one.first = d.line + lines[i] - 1
		}
		object, ok := item.(map[string]any)
		if one.Object = object; !ok {
			one.broken = one.failed(fmt.Sprintf("items[%d]", i), "is not an object")
		}
		all = append(all, flatten(one)...)
	}
	return all
}

// linesOfItems are the lines where the items of a List begin, from 1.
func linesOfItems(text []byte) (lines []int) {
	var list struct {
		Items []yaml.Node `yaml:"items"`
	}
	if len(text) == 0 || yaml.Unmarshal(text, &list) != nil {
		return nil
	}
	for i := range list.Items {
		lines = append(lines, list.Items[i].Line)
	}
	return lines
}
