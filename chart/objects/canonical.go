// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxExact bounds the whole numbers that a float64 represents exactly: 2^53.
const maxExact = 1 << 53

// Canonical is an object as one line of JSON, with a newline at its end: keys are sorted, and a whole number has no fraction. Objects
// that are equal as JSON give equal bytes. The error is that of a value that JSON cannot represent.
func Canonical(o *unstructured.Unstructured) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	content := any(o.Object)
	if hasFloat(content) {
		content = wholeNumbers(content)
	}
	if err := encoder.Encode(content); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", KeyOf(o), err)
	}
	return out.Bytes(), nil
}

// line is an object in canonical form.
type line struct {
	key  Key
	text []byte
}

// canonicalLines are the lines of objects, sorted.
func canonicalLines(objects []unstructured.Unstructured) ([]line, error) {
	lines := make([]line, len(objects))
	for i := range objects {
		text, err := Canonical(&objects[i])
		if err != nil {
			return nil, err
		}
		lines[i] = line{KeyOf(&objects[i]), text}
	}
	sortLines(lines)
	return lines, nil
}

// sortLines sorts by Key, and equal Keys by their content, so that the result does not depend on the order before.
func sortLines(lines []line) {
	slices.SortFunc(lines, func(a, b line) int { return cmp.Or(a.key.Compare(b.key), bytes.Compare(a.text, b.text)) })
}

// digestOf is the sha256, in hex, of sorted lines.
func digestOf(lines []line) string {
	sum := sha256.New()
	for _, l := range lines {
		_, _ = sum.Write(l.text) // a hash returns no error
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// hasFloat reports whether a value contains a float64. Most objects have none and are encoded without a copy.
func hasFloat(value any) bool {
	switch v := value.(type) {
	case float64:
		return true
	case []any:
		return slices.ContainsFunc(v, hasFloat)
	case map[string]any:
		for _, element := range v {
			if hasFloat(element) {
				return true
			}
		}
	}
	return false
}

// wholeNumbers is a copy in which each float64 without a fraction is an int64. Decoders differ in what they make of 1.0 and -0.
func wholeNumbers(value any) any {
	switch v := value.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < maxExact {
			return int64(v)
		}
	case []any:
		out := make([]any, len(v))
		for i, element := range v {
			out[i] = wholeNumbers(element)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, element := range v {
			out[key] = wholeNumbers(element)
		}
		return out
	}
	return value
}
