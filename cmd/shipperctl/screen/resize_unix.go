// SPDX-License-Identifier: Apache-2.0

//go:build unix

package screen

import (
	"os"
	"os/signal"
	"syscall"
)

// resizes reports when the window has another size.
func resizes() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}
