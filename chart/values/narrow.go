// SPDX-License-Identifier: Apache-2.0

package values

import (
	"maps"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// unescape decodes a token of a JSON pointer (RFC 6901).
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// TouchedKeys are the top-level keys of values that a patch reads or writes; whole is true when it reads or writes the values as a
// whole. Values of other keys are not needed to apply it.
func TouchedKeys(operations []shipper.PatchOperation) (keys map[string]bool, whole bool) {
	keys = map[string]bool{}
	for _, operation := range operations {
		for _, field := range []string{"path", "from"} {
			pointer, there := operation[field].(string)
			if !there {
				continue
			}
			if pointer == "" {
				return nil, true
			}
			key, _, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
			keys[unescape.Replace(key)] = true
		}
	}
	return keys, false
}

// applyNarrowly is apply that decodes only the touched values, because those of a large Application are patched for each of
// many clusters.
func (p patch) applyNarrowly(values map[string]any) (map[string]any, error) {
	keys, whole := TouchedKeys(p.operations)
	if whole {
		return p.apply(values)
	}
	part, rest := map[string]any{}, maps.Clone(values)
	for key := range keys {
		if value, there := values[key]; there {
			part[key] = value
			delete(rest, key)
		}
	}
	patched, err := p.apply(part)
	if err != nil {
		return nil, err
	}
	if rest == nil {
		return patched, nil
	}
	maps.Copy(rest, patched)
	return rest, nil
}
