// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
)

// unusable is the error of an answer that is complete and invalid.
type unusable struct{ err error }

// Error says why.
func (u *unusable) Error() string { return u.err.Error() }

// guard runs a parser on untrusted input: it marks its errors as unusable, and turns a panic into one.
func guard[T any](parse func() (T, error)) (result T, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = &unusable{fmt.Errorf("cannot be read: %s", shorten(fmt.Sprint(caught)))}
		}
	}()
	result, err = parse()
	if err != nil {
		err = &unusable{err}
	}
	return result, err
}
