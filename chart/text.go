// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"strings"
)

// shorten bounds quotes of users and servers to a length for conditions.
func shorten(s string) string { return limit(s, 200) }

// limit cuts s to most bytes.
func limit(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// mebibytes formats a size.
func mebibytes(size int64) string {
	if size%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", size>>20)
	}
	return fmt.Sprintf("%d bytes", size)
}
