// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
	"testing"
)

func TestEmptyListsAndItemsAreNoObjects(t *testing.T) {
	found, err := read([]byte("apiVersion: v1\nkind: List\nitems: []\n---\napiVersion: v1\nkind: List\nitems:\n" +
		"---\napiVersion: v1\nkind: List\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: a}}\n-\n" +
		"---\napiVersion: example.com/v1\nkind: AllowList\nmetadata: {name: a}\n"))
	var titles []string
	for _, d := range found {
		titles = append(titles, d.title())
	}
	if err != nil || !slices.Equal(titles, []string{"Secret a", "AllowList a"}) {
		t.Errorf("%q, %v", titles, err)
	}
}
