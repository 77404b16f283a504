// SPDX-License-Identifier: Apache-2.0

package lru

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLRU(t *testing.T) {
	l := New[string, int](10)
	var forgotten []string
	for i, key := range []string{"a", "b", "c"} {
		forgotten = append(forgotten, l.Put(key, i, 3)...)
	}
	if _, ok := l.Get("a"); !ok {
		t.Error("a is not kept")
	}
	forgotten = append(forgotten, l.Put("d", 3, 3)...) // b is the least recently used
	forgotten = append(forgotten, l.Put("e", 4, 11)...)
	forgotten = append(forgotten, l.Put("a", 5, 10)...)
	l.Drop("nothing")
	if diff := cmp.Diff([]string{"b", "e", "c", "d"}, forgotten); diff != "" {
		t.Error(diff)
	}
	if got, ok := l.Get("a"); !ok || got != 5 || l.cost != 10 {
		t.Errorf("a is %d, %v; all cost %d", got, ok, l.cost)
	}
}
