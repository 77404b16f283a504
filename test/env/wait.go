// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"testing"
	"time"

	"shipper.dev/shipper/test/await"
)

// Patience is await.Patience.
const Patience = await.Patience

// Until is await.Until.
func Until(ctx context.Context, what string, look func(context.Context) error) error {
	return await.Until(ctx, what, look)
}

// Eventually is await.Eventually.
func Eventually(t testing.TB, what string, look func(context.Context) error) {
	t.Helper()
	await.Eventually(t, what, look)
}

// Within is await.Within.
func Within(t testing.TB, patience time.Duration, what string, look func(context.Context) error) {
	t.Helper()
	await.Within(t, patience, what, look)
}

// Becomes is await.Becomes.
func Becomes(t testing.TB, what, expected string, look func() (string, error)) {
	t.Helper()
	await.Becomes(t, what, expected, look)
}
