// SPDX-License-Identifier: Apache-2.0

// Package await has the one loop in which tests in real time wait. test/env offers it to tests that share a fleet; packages that env
// itself imports, and those without a fleet, use it from here.
//
// There are other loops for these reasons alone: test/simulation waits in virtual time, for changes and not for ticks;
// reconciler/queue and certs look each millisecond for another goroutine of the same process; cmd/shipperctl waits for its users,
// and nothing that ships imports a test.
package await

import (
	"context"
	"fmt"
	"testing"
	"time"
)

const (
	// Patience bounds a wait. On an idle machine each takes less than a fiftieth of it; a busy one may be ten times as slow.
	Patience = 5 * time.Minute
	// A wait looks every shortest at first, and later every share of the time that it has lasted, but not more seldom than every longest:
	// its end is noticed late by a share of the time, and a long wait of many tests costs the API server no more than a short one.
	shortest, longest, share = 100 * time.Millisecond, time.Second, 8
	// long is how long a wait lasts before each report of its progress.
	long = 15 * time.Second
)

// pause is how long a wait rests that has lasted so long.
func pause(lasted time.Duration) time.Duration { return min(max(lasted/share, shortest), longest) }

// Until looks again and again until there is no error. When ctx ends first, it returns what was wrong last.
func Until(ctx context.Context, what string, look func(context.Context) error) error {
	var last error
	for began := time.Now(); ; {
		now := look(ctx)
		if now == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil { // that the time is over says less than what was wrong before
			last = now
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, last)
		case <-time.After(pause(time.Since(began))):
		}
	}
}

// Progress returns a function to call after each look of a wait for what. Each time that the wait has lasted long once more, it says so and
// names the last error.
func Progress(say func(format string, args ...any), what string) func(missing error) {
	return ProgressEach(long, say, what)
}

// ProgressEach is Progress with another time between two reports.
func ProgressEach(every time.Duration, say func(format string, args ...any), what string) func(missing error) {
	began := time.Now()
	last := began
	return func(missing error) {
		if now := time.Now(); missing != nil && now.Sub(last) >= every {
			last = now
			say("still waiting for %s, after %s: %v", what, now.Sub(began).Round(time.Second), missing)
		}
	}
}

// Eventually is Until for as long as Patience. It fails the test when that was in vain.
func Eventually(t testing.TB, what string, look func(context.Context) error) {
	t.Helper()
	Within(t, Patience, what, look)
}

// Within is Eventually with a time of its own.
func Within(t testing.TB, patience time.Duration, what string, look func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience) // which has ended when t cleans up
	defer cancel()
	if err := Until(ctx, what, look); err != nil {
		t.Fatalf("after %s: %v", patience, err)
	}
}

// Becomes waits until look sees what is expected.
func Becomes(t testing.TB, what, expected string, look func() (string, error)) {
	t.Helper()
	BecomesWithin(t, Patience, what, expected, look)
}

// BecomesWithin is Becomes with a time of its own.
func BecomesWithin(t testing.TB, patience time.Duration, what, expected string, look func() (string, error)) {
	t.Helper()
	Within(t, patience, what, func(context.Context) error {
		seen, err := look()
		if err != nil {
			return fmt.Errorf("\n  expected: %s\n  seen:     %s: %w", expected, seen, err)
		}
		if seen != expected {
			return fmt.Errorf("\n  expected: %s\n  seen:     %s", expected, seen)
		}
		return nil
	})
}
