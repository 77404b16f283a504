// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLRU(t *testing.T) {
	l := newLRU[string, int](10)
	var forgotten []string
	for i, key := range []string{"a", "b", "c"} {
		forgotten = append(forgotten, l.put(key, i, 3)...)
	}
	if _, ok := l.get("a"); !ok {
		t.Error("a is not kept")
	}
	forgotten = append(forgotten, l.put("d", 3, 3)...) // b is the least recently used
	forgotten = append(forgotten, l.put("e", 4, 11)...)
	forgotten = append(forgotten, l.put("a", 5, 10)...)
	l.drop("nothing")
	if diff := cmp.Diff([]string{"b", "e", "c", "d"}, forgotten); diff != "" {
		t.Error(diff)
	}
	if got, ok := l.get("a"); !ok || got != 5 || l.cost != 10 {
		t.Errorf("a is %d, %v; all cost %d", got, ok, l.cost)
	}
}
