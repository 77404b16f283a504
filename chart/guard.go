// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
)

// Unusable is the error of an answer that is complete and invalid.
type Unusable struct{ Err error }

// Error says why.
func (u *Unusable) Error() string { return u.Err.Error() }

// Guard runs a parser on untrusted input: it marks its errors as unusable, and turns a panic into one.
func Guard[T any](parse func() (T, error)) (result T, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = &Unusable{fmt.Errorf("cannot be read: %s", Shorten(fmt.Sprint(caught)))}
		}
	}()
	result, err = parse()
	if err != nil {
		err = &Unusable{err}
	}
	return result, err
}
