// SPDX-License-Identifier: Apache-2.0

package program

import "syscall"

// endsWithParent makes the kernel kill a child as soon as its parent is gone.
func endsWithParent() *syscall.SysProcAttr {
	// Its own process group keeps an interrupt from the keyboard away: the fleet stops the program.
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
