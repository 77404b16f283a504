// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"strings"
)

// Shorten bounds quotes of users and servers to a length for conditions.
func Shorten(s string) string { return Limit(s, 200) }

// Limit cuts s to most bytes.
func Limit(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Mebibytes formats a size.
func Mebibytes(size int64) string {
	if size%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", size>>20)
	}
	return fmt.Sprintf("%d bytes", size)
}
