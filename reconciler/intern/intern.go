// SPDX-License-Identifier: Apache-2.0

// Package intern lets the objects of caches share what is equal in them. Each object is decoded into strings and maps of its own,
// though a Release, its targets and what they install in every cluster have the same labels, names, types and reasons.
package intern

import (
	"hash/maphash"
	"maps"
	"reflect"
	"sync"
)

// Sizes of what is remembered: as much as is in use again soon, not all there is.
const (
	strings = 1 << 16
	tables  = 1 << 14
	locks   = 1 << 6
	longest = 128 // bytes of a string that may be another's too
)

// Table remembers what objects had in them that came before. It never grows: what is new takes the place of something else. It is
// safe for concurrent use.
type Table struct {
	seed    maphash.Seed
	locks   [locks]sync.Mutex // of the strings and the maps whose number ends alike
	strings [strings]string
	maps    [tables]map[string]string
	types   sync.Map // []int by reflect.Type
}

// NewTable returns a Table that remembers nothing.
func NewTable() *Table { return &Table{seed: maphash.MakeSeed()} }

// Share gives an object, to which object points, strings and maps of strings that others have already, and lists that are no longer
// than what is in them. It is equal to what it was before. From then on nobody may change what is in its maps.
func (t *Table) Share(object any) {
	if v := reflect.ValueOf(object); v.Kind() == reflect.Pointer && !v.IsNil() {
		t.share(v.Elem())
	}
}

func (t *Table) share(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			t.share(v.Elem())
		}
	case reflect.Struct:
		for _, i := range t.fields(v.Type()) {
			t.share(v.Field(i))
		}
	case reflect.String:
		v.SetString(t.text(v.String()))
	case reflect.Slice:
		t.list(v)
	case reflect.Map:
		if m, ok := v.Interface().(map[string]string); ok && len(m) > 0 {
			v.Set(reflect.ValueOf(t.table(m)))
		}
	}
}

// fields are those of a type that may have something to share.
func (t *Table) fields(of reflect.Type) []int {
	if known, ok := t.types.Load(of); ok {
		out, _ := known.([]int)
		return out
	}
	var out []int
	for i := range of.NumField() {
		field := of.Field(i)
		switch field.Type.Kind() {
		case reflect.Pointer, reflect.Struct, reflect.String, reflect.Slice, reflect.Map:
			if field.IsExported() && field.Name != "ResourceVersion" { // which nobody else has
				out = append(out, i)
			}
		}
	}
	t.types.Store(of, out)
	return out
}

// list makes a list as long as it is.
func (t *Table) list(v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return
	}
	if v.Cap() > v.Len() {
		exact := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(exact, v)
		v.Set(exact)
	}
	for i := range v.Len() {
		t.share(v.Index(i))
	}
}

// text is a string that is equal.
func (t *Table) text(s string) string {
	if len(s) == 0 || len(s) > longest {
		return s
	}
	n := maphash.String(t.seed, s)
	lock := &t.locks[n%locks]
	lock.Lock()
	defer lock.Unlock()
	at := &t.strings[n%strings]
	if *at != s {
		*at = s
	}
	return *at
}

// table is a map that is equal.
func (t *Table) table(m map[string]string) map[string]string {
	n := uint64(0)
	for k, v := range m { // in whatever order
		n += maphash.String(t.seed, k) ^ 3*maphash.String(t.seed, v)
	}
	lock := &t.locks[n%locks]
	lock.Lock()
	known := t.maps[n%tables]
	lock.Unlock()
	if maps.Equal(known, m) {
		return known
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[t.text(k)] = t.text(v)
	}
	lock.Lock()
	defer lock.Unlock()
	t.maps[n%tables] = out
	return out
}
