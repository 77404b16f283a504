// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"math/rand/v2"
	"time"

	"shipper.dev/shipper/chart"
)

const (
	firstDelay = time.Second
	mostDelay  = time.Minute
)

// backoff decides when a failed action may be tried again. The zero value has not failed.
type backoff struct {
	failures int
	until    time.Time
	// err is the last failure.
	err *chart.Error
}

// fail records a failure: the delay doubles with each, plus a random part of up to half.
func (b *backoff) fail(now time.Time, err *chart.Error) {
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

// refusal is the last failure with the same text. It ends up in conditions: a text that differed between an attempt and the
// wait after it would cause a write each time.
func (b *backoff) refusal() *chart.Error {
	again := *b.err
	return &again
}
