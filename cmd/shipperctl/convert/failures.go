// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"maps"
	"slices"
)

// failures are why objects of the input could not be converted.
type failures struct {
	// of has them by the index of the document.
	of map[int]error
	// more are those of several documents.
	more []error
}

// add records why a document is not converted. The first error of a document stays.
func (f *failures) add(index int, err error) {
	if f.of == nil {
		f.of = map[int]error{}
	}
	if f.of[index] == nil {
		f.of[index] = err
	}
}

// also records an error of several documents.
func (f *failures) also(err error) { f.more = append(f.more, err) }

// has reports whether a document is not converted because of an error.
func (f *failures) has(index int) bool { return f.of[index] != nil }

// ordered are all errors, in the order of the documents.
func (f *failures) ordered() []error {
	var all []error
	for _, index := range slices.Sorted(maps.Keys(f.of)) {
		all = append(all, f.of[index])
	}
	return append(all, f.more...)
}
