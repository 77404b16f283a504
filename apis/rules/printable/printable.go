// SPDX-License-Identifier: Apache-2.0

// Package printable makes texts of users safe to show: in messages of the webhook, and on terminals.
package printable

import (
	"strings"
	"unicode"
)

// OneLine replaces characters of a text that do not print, including those that control the writing direction, by spaces, and joins its
// lines: otherwise a text could break its line or send control sequences to a terminal.
func OneLine(text string) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	return strings.Join(strings.Fields(printable), " ")
}
