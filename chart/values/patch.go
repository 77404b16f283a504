// SPDX-License-Identifier: Apache-2.0

package values

import (
	"errors"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/util/json"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
)

// CheckPatch returns the index of the first invalid operation of a JSON patch and the reason; an empty reason when the patch is
// valid.
func CheckPatch(operations []shipper.PatchOperation) (index int, why string) {
	_, index, why = decodePatch(operations)
	return index, why
}

// decodePatch converts a patch for the library, or returns the index of an invalid operation, and the reason.
func decodePatch(operations []shipper.PatchOperation) (out jsonpatch.Patch, bad int, why string) {
	for i, operation := range operations {
		if why := whyNoOperation(operation); why != "" {
			return nil, i, why
		}
		text, err := json.Marshal([]shipper.PatchOperation{operation})
		if err != nil {
			return nil, i, "cannot be written as JSON"
		}
		one, err := jsonpatch.DecodePatch(text)
		if err != nil {
			return nil, i, "is no operation of a JSON patch (RFC 6902)"
		}
		out = append(out, one...)
	}
	return out, 0, ""
}

// whyNoOperation checks an operation against RFC 6902, more strictly than the library does.
func whyNoOperation(operation shipper.PatchOperation) string {
	op, _ := operation["op"].(string)
	needs := []string{"op", "path"}
	switch op {
	case "add", "replace", "test":
		needs = append(needs, "value")
	case "move", "copy":
		needs = append(needs, "from")
	case "remove":
	default:
		return "must have an op: add, remove, replace, move, copy or test"
	}
	for _, field := range needs {
		if _, there := operation[field]; !there {
			return fmt.Sprintf("must have %s, as every %s", field, op)
		}
	}
	for field, value := range operation {
		switch field {
		case "op", "value":
		case "path", "from":
			if why := whyNoPointer(value); why != "" {
				return fmt.Sprintf("has the %s %s", field, why)
			}
		default:
			return fmt.Sprintf("has a field %q, which no operation has", chart.Shorten(field))
		}
	}
	return ""
}

// whyNoPointer checks a path against RFC 6901.
func whyNoPointer(value any) string {
	pointer, ok := value.(string)
	if !ok {
		return "that is no text"
	}
	if pointer == "" || strings.HasPrefix(pointer, "/") {
		return ""
	}
	return fmt.Sprintf("%q: paths begin with /, as in /image/tag", chart.Shorten(pointer))
}

// whyNot is the reason why an operation does not apply. It does not use the library's messages, which may quote values.
func whyNot(operation jsonpatch.Operation, err error) string {
	kind := operation.Kind()
	path, _ := operation.Path()
	var tooLarge *jsonpatch.AccumulatedCopySizeError
	switch {
	case errors.As(err, &tooLarge):
		return fmt.Sprintf("(%s %s) copies more than the %s that are accepted", kind, chart.Shorten(path), chart.Mebibytes(MaxBytes))
	case errors.Is(err, jsonpatch.ErrTestFailed):
		return fmt.Sprintf("(test %s) fails: the merged values have something else there", chart.Shorten(path))
	case kind == "move" || kind == "copy":
		from, _ := operation.From()
		return fmt.Sprintf("(%s from %s to %s) does not apply: the merged values have no such place",
			kind, chart.Shorten(from), chart.Shorten(path))
	}
	return fmt.Sprintf("(%s %s) does not apply: the merged values have no such place; the chart's own defaults are not seen",
		kind, chart.Shorten(path))
}
