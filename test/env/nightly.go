// SPDX-License-Identifier: Apache-2.0

package env

import (
	"os"
	"testing"
)

// IsNightly reports whether `make nightly` runs the tests, which sets SHIPPER_NIGHTLY.
func IsNightly() bool { return os.Getenv("SHIPPER_NIGHTLY") != "" }

// Nightly skips a test that `make test` leaves to `make nightly`. The sentence why says what covers the same in `make test`, or
// why nothing has to.
func Nightly(t testing.TB, why string) {
	t.Helper()
	if !IsNightly() {
		t.Skip("only in `make nightly`: " + why)
	}
}
