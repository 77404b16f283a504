// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package program

import "syscall"

// endsWithParent cannot tie a child to its parent on this system: Stop must be called.
func endsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
