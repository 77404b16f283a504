// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"math/rand/v2"
	"time"
)

const (
	firstDelay = time.Second
	mostDelay  = time.Minute
)

// backoff says when something that failed may be tried again. The zero value has not failed.
type backoff struct {
	failures int
	until    time.Time
	// err is the last failure.
	err *Error
}

// fail notes a failure: the delay doubles with each, and up to half of it is added by chance.
func (b *backoff) fail(now time.Time, err *Error) {
	delay := mostDelay
	if b.failures < 6 {
		delay = min(mostDelay, firstDelay<<b.failures)
	}
	b.failures++
	b.until = now.Add(delay + time.Duration(rand.Int64N(int64(delay/2))))
	b.err = err
}

// holds reports whether it is too early to try again.
func (b *backoff) holds(now time.Time) bool {
	return b.err != nil && now.Before(b.until)
}

// refusal is the last failure, to the letter: it ends up in conditions, and a text that tells an attempt from the wait
// for the next would be written over and over.
func (b *backoff) refusal() *Error {
	again := *b.err
	return &again
}
