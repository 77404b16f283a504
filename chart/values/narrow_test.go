// SPDX-License-Identifier: Apache-2.0

package values

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestPatchesSeeNoMoreThanTheyNeed applies patches to the part they touch and to all, which comes to the same.
func TestPatchesSeeNoMoreThanTheyNeed(t *testing.T) {
	values := func() map[string]any {
		return map[string]any{
			"a": map[string]any{"b": int64(1), "list": []any{"x", "y"}}, "c": "d", "with/slash": "e", "with~tilde": "f", "": "g", "rest": int64(7),
		}
	}
	for sentence, operations := range map[string][]shipper.PatchOperation{
		"below a key":          {{"op": "add", "path": "/a/list/0", "value": "z"}},
		"a key":                {{"op": "remove", "path": "/c"}},
		"a new key":            {{"op": "add", "path": "/new", "value": map[string]any{"x": int64(1)}}},
		"from key to key":      {{"op": "move", "from": "/a/b", "path": "/c"}, {"op": "copy", "from": "/c", "path": "/a/b"}},
		"escaped keys":         {{"op": "replace", "path": "/with~1slash", "value": "1"}, {"op": "remove", "path": "/with~0tilde"}},
		"the key without name": {{"op": "replace", "path": "/", "value": "1"}},
		"all": {
			{"op": "test", "path": "/c", "value": "d"}, {"op": "replace", "path": "", "value": map[string]any{"only": int64(1)}},
		},
		"what is not there":   {{"op": "remove", "path": "/none"}},
		"what is not as said": {{"op": "test", "path": "/rest", "value": int64(8)}},
		"nothing":             {},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := patch{operations, PatchError{what: "it"}}
			want, wrong := p.apply(values())
			given := values()
			got, err := p.applyNarrowly(given)
			if diff := cmp.Diff(want, got); diff != "" || (wrong == nil) != (err == nil) || err != nil && err.Error() != wrong.Error() {
				t.Errorf("-want +got:\n%s\nwant %v, got %v", diff, wrong, err)
			}
			if diff := cmp.Diff(values(), given); diff != "" {
				t.Errorf("what was given has changed:\n%s", diff)
			}
		})
	}
}
