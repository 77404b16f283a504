// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lifetimeLock is the environment variable that may name a file. The fleet stops when no process has that file locked, so
// that a test's fleet ends with the test, even if the test crashes.
const lifetimeLock = "FLEET_LIFETIME_LOCK"

// untilUnlocked returns a context that ends when the file is unlocked.
func untilUnlocked(ctx context.Context) (context.Context, error) {
	path := os.Getenv(lifetimeLock)
	if path == "" {
		return ctx, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening what %s names: %w", lifetimeLock, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for errors.Is(syscall.Flock(int(file.Fd()), syscall.LOCK_SH), syscall.EINTR) {
		}
		cancel()
	}()
	return ctx, nil
}
