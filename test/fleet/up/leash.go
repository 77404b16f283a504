// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// leash is the environment variable that may name a file. When nobody has it locked, the fleet ends: that of a test ends with
// the test, however that ends.
const leash = "FLEET_LEASH"

// leashed is ctx until the leash ends.
func leashed(ctx context.Context) (context.Context, error) {
	path := os.Getenv(leash)
	if path == "" {
		return ctx, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening what %s names: %w", leash, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for errors.Is(syscall.Flock(int(file.Fd()), syscall.LOCK_SH), syscall.EINTR) {
		}
		cancel()
	}()
	return ctx, nil
}
