// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/chart"
)

// document is one object of the input.
type document struct {
	// number of the YAML document, from 1. Empty documents are not counted; items of a List have the number of the List.
	number int
	// text is that of the YAML document, and line where it begins in the input, from 1.
	text []byte
	line int
	unstructured.Unstructured
}

// title names the object in messages.
func (d document) title() string { return d.GetKind() + " " + d.GetName() }

// failed is an error about a field of the document.
func (d document) failed(field, format string, args ...any) error {
	return fmt.Errorf("document %d: %s %w", d.number, field, fmt.Errorf(format, args...))
}

// is reports whether the object is of a kind.
func (d document) is(apiVersion, kind string) bool {
	return d.GetAPIVersion() == apiVersion && d.GetKind() == kind
}

// besides reports whether the object can be in the namespace of another one. A manifest may leave the namespace out.
func (d document) besides(other document) bool {
	return d.GetNamespace() == other.GetNamespace() || d.GetNamespace() == "" || other.GetNamespace() == ""
}

// read parses YAML documents, and takes Lists apart.
func read(raw []byte) ([]document, error) {
	if len(raw) > maxInput {
		return nil, errTooLarge
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	var all []document
	at := 0 // where the next document begins at the earliest
	for number := 1; ; {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		object, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		if object == nil {
			continue
		}
		at += max(bytes.Index(raw[at:], text), 0)
		line := 1 + bytes.Count(raw[:at], []byte("\n"))
		at = min(at+len(text), len(raw))
		found, err := flatten(document{number, text, line, unstructured.Unstructured{Object: object}})
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
		number++
	}
}

// parse decodes one document; nil if it is empty. Duplicate keys are errors.
func parse(text []byte) (map[string]any, error) {
	asJSON, err := yaml.YAMLToJSONStrict(text)
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

// flatten returns the items of a List, or else the document itself.
func flatten(d document) ([]document, error) {
	if d.ofKeptn() {
		return []document{d}, nil
	}
	for _, field := range []string{"apiVersion", "kind"} {
		if value, _, err := unstructured.NestedString(d.Object, field); err != nil || value == "" {
			return nil, d.failed(field, "is missing")
		}
	}
	if !strings.HasSuffix(d.GetKind(), "List") {
		return []document{d}, nil
	}
	if chart.IsEmptyList(&d.Unstructured) {
		return nil, nil
	}
	items, found, err := unstructured.NestedSlice(d.Object, "items")
	if err != nil || !found {
		return []document{d}, nil //nolint:nilerr // a kind may end with List and have no items
	}
	var all []document
	for i, item := range items {
		if item == nil {
			continue
		}
		object, ok := item.(map[string]any)
		if !ok {
			return nil, d.failed(fmt.Sprintf("items[%d]", i), "is not an object")
		}
		found, err := flatten(document{d.number, nil, d.line, unstructured.Unstructured{Object: object}})
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}
